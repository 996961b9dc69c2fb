package cluster

// MaxClients is the bound that production has.
const MaxClients = maxClients

// Looks are the tokens that production has.
var Looks = looks
