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
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/validation/field"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/synchub-dev/synchub/apis/config/v1alpha1"
)

// Files of metrics.certDir, named as the keys of a Secret of type kubernetes.io/tls.
const (
	metricsCertName = "tls.crt"
	metricsKeyName  = "tls.key"
)

// validateMetricsCertificate reads the certificate of the metrics server, because controller-runtime uses a self-signed one if
// there is none.
func validateMetricsCertificate(settings *v1alpha1.MetricsConfiguration) field.ErrorList {
	if settings.CertDir == "" {
		return nil
	}
	if _, err := tls.LoadX509KeyPair(filepath.Join(settings.CertDir, metricsCertName), filepath.Join(settings.CertDir, metricsKeyName)); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("metrics", "certDir"), settings.CertDir,
			fmt.Sprintf("must be a directory with a certificate in %s and its key in %s: %v", metricsCertName, metricsKeyName, err))}
	}
	return nil
}

// metricsServer returns the options of the server of /metrics.
func metricsServer(settings v1alpha1.MetricsConfiguration) metricsserver.Options {
	options := metricsserver.Options{BindAddress: settings.BindAddress}
	if !settings.Secure {
		return options
	}
	options.SecureServing = true
	options.FilterProvider = authenticateMetrics
	options.CertDir, options.CertName, options.KeyName = settings.CertDir, metricsCertName, metricsKeyName
	options.TLSOpts = []func(*tls.Config){func(config *tls.Config) {
		config.MinVersion = tls.VersionTLS13
		// A scrape is one request and needs no HTTP/2. Without it, attacks on HTTP/2, such as rapid resets, do not reach the
		// hub.
		config.NextProtos = []string{"http/1.1"}
	}}
	return options
}
