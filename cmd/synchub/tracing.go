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
	"os"
	"time"

	"github.com/go-logr/logr"

	"github.com/synchub-dev/synchub/apis/config/v1alpha1"
	"github.com/synchub-dev/synchub/provider/tracing/otlp"
)

// traceFlushTimeout bounds the wait for the collector at the end of the hub.
const traceFlushTimeout = 3 * time.Second

// newTraceExporter returns the exporter of traces, nil if none are recorded.
func newTraceExporter(ctx context.Context, s v1alpha1.TracingConfiguration, log logr.Logger) (*otlp.Exporter, error) {
	if s.Endpoint == "" || s.SamplingRatePerMillion == 0 {
		return nil, nil //nolint:nilnil // there is no exporter
	}
	// Without a host name the instance has no name.
	instance, _ := os.Hostname()
	return otlp.New(ctx, otlp.Options{
		Endpoint: s.Endpoint, SamplesPerMillion: s.SamplingRatePerMillion, Version: version, Instance: instance, Log: log.WithName("tracing"),
	})
}

// flushTraces sends the traces that are left when the hub ends. It delays the end of the hub only for a short time.
func flushTraces(exporter *otlp.Exporter, log logr.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), traceFlushTimeout)
	defer cancel()
	if err := exporter.Shutdown(ctx); err != nil {
		log.Info("some traces are lost", "error", err.Error())
	}
}
