# Sluice. The two commands to know are make demo and make test; each sets up what it needs.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
IMAGE ?= sluice:dev

.PHONY: help generate fmt lint verify test torture bench demo up down build image

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

generate: ## Write deepcopy code, CRDs, roles and the API reference from the Go types
	config/generate.sh

fmt: ## Format the Go code
	"$$(tests/tools.sh)/golangci-lint" fmt

lint: ## Look for mistakes in the Go code
	"$$(tests/tools.sh)/golangci-lint" run ./...

verify: generate fmt lint ## Generate, format and lint; fail when anything differs from what is committed
	tests/clean.sh

test: ## Run all tests, with the race detector, against a real API server
	tests/test.sh

torture: ## Kill the program at all points, also with a set of 200 targets, push beside it, measure it beside 200 hostile objects and in 256 MiB, play 2,000 random sequences of what operators and users do, hold 200 random pairs of releases against their previews, and play 5,000 random sequences of what people do to packages, also with old faults; a failure prints its seed
	SLUICE_TORTURE=1 tests/test.sh -run "Killed|TestForeignWriters|TestAHostileTenant|TestHostileInputs|TagSwapped" -count=1 ./tests/e2e
	SLUICE_TORTURE=1 tests/test.sh -run "TestALargePackageGoes|TestRandomChanges" -count=1 ./controllers/packages ./internal/pkgrepo
	SLUICE_TORTURE=1 go test ./internal/git ./internal/source/helmrepository ./storage/local ./internal/archive -run "TestAKilled|Oracle|TestFilterIsFluxs" -count=1
	SLUICE_TORTURE=$${SLUICE_TORTURE:-2000} go test ./internal/engine -run TestNothingOfAUserIsLost -count=1 -timeout=12h
	SLUICE_TORTURE=$${SLUICE_TORTURE:-5000} go test ./controllers/packages -run "TestNoWorkOfAPersonIsLost|TestNoWorkIsLostWithTheKinds" -count=1 -timeout=24h
	tests/faults/run.sh
	SLUICE_TORTURE_PREVIEWS=$${SLUICE_TORTURE_PREVIEWS:-200} go test ./internal/engine -run TestPreviewsComeTrue -count=1 -timeout=1h

bench: ## Measure against git, tar, gzip, a plain download and kubectl doing the same work
	go run ./tests/bench

demo: ## Show the main job from end to end on a control plane of its own, then remove it
	tests/needs.sh chromium-headless-shell
	tests/quietly.sh go run ./tests/demo

up: ## The same, but leave it running and say how to reach it
	tests/quietly.sh go run ./tests/demo -keep

down: ## Stop what make up left running
	go run ./tests/demo -down

build: ## Build the static binary bin/sluice
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/sluice .

image: ## Build the container image
	docker build -t "$(IMAGE)" .
