/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// agentProbes answers the probes of an agent. It answers from the start, since an agent waits for a connection to kcp as long as there
// is none: a restart would not help.
type agentProbes struct {
	// ready is true when the agent has an assignment.
	ready atomic.Bool
}

// startAgentProbes answers the probes at an address until the context ends. The address 0 means none.
func startAgentProbes(ctx context.Context, address string) (*agentProbes, error) {
	probes := &agentProbes{}
	if address == "0" {
		return probes, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("set --health-probe-bind-address to an address that is free: %w", err)
	}
	server := &http.Server{Handler: probes.handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return probes, nil
}

func (p *agentProbes) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/readyz", func(response http.ResponseWriter, _ *http.Request) {
		if !p.ready.Load() {
			http.Error(response, "the agent waits for its assignment", http.StatusServiceUnavailable)
		}
	})
	return mux
}
