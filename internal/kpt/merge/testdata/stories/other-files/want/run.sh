#!/bin/sh
echo one
echo mine
