package ui

import "time"

// Running is what runs: this program, the controllers, and which of their replicas works.
type Running struct {
	Program  string
	Managers []string
	Leaders  []Leader
	// Lacking are what could not be read, and why.
	Lacking []string
}

// Leader is the replica that works.
type Leader struct {
	// Lease is the object that says so.
	Lease string
	// Holder is its pod; empty where none works.
	Holder string
	Since  time.Time
}

// overviewed is the overview.
type overviewed struct {
	summary

	Running *Running
}
