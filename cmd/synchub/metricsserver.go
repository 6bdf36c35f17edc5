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
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Files of --metrics-cert-dir, named as the keys of a Secret of type kubernetes.io/tls.
const (
	metricsCertName = "tls.crt"
	metricsKeyName  = "tls.key"
)

// validateMetrics returns an error unless the flags of the metrics server fit together. It reads the certificate, because
// controller-runtime uses a self-signed certificate if there is none.
func (o *runOptions) validateMetrics() error {
	switch {
	case o.metricsCertDir == "":
		return nil
	case !o.metricsSecure:
		return errors.New("set --metrics-secure as well: only then the hub uses the certificate in --metrics-cert-dir")
	}
	if _, err := tls.LoadX509KeyPair(filepath.Join(o.metricsCertDir, metricsCertName), filepath.Join(o.metricsCertDir, metricsKeyName)); err != nil {
		return fmt.Errorf("set --metrics-cert-dir to a directory with a certificate in %s and its key in %s: %w", metricsCertName, metricsKeyName, err)
	}
	return nil
}

// metricsServer returns the options of the server of /metrics.
func (o *runOptions) metricsServer() metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.metricsAddress}
	if !o.metricsSecure {
		return options
	}
	options.SecureServing = true
	options.FilterProvider = filters.WithAuthenticationAndAuthorization
	options.CertDir, options.CertName, options.KeyName = o.metricsCertDir, metricsCertName, metricsKeyName
	options.TLSOpts = []func(*tls.Config){func(config *tls.Config) {
		config.MinVersion = tls.VersionTLS13
		// A scrape is one request. Without HTTP/2 its attacks, such as rapid resets, do not reach the hub.
		config.NextProtos = []string{"http/1.1"}
	}}
	return options
}
