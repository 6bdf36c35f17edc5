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

package requestmetrics

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/tracing"
)

// Destination is the server that a request goes to.
type Destination string

const (
	// Mailbox is kcp, through the mailbox export's virtual workspace.
	Mailbox Destination = "mailbox"
	// Target is a target cluster.
	Target Destination = "target"
	// Control is everything else in kcp: inventory and provider workspaces.
	Control Destination = "control"
)

var requestsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "synchub_requests_total",
	Help: "Requests sent, by destination (mailbox, target, control), class (object, extra, background), verb, resource and status code.",
}, []string{"destination", "class", "verb", "resource", "code"})

// Collectors returns the package's metrics, to be registered once.
func Collectors() []prometheus.Collector { return []prometheus.Collector{requestsTotal} }

// InstrumentRoundTripper returns a wrapper for transports that counts all requests to the destination, and records the
// requests of a traced pass.
func InstrumentRoundTripper(destination Destination) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripperFunc(func(request *http.Request) (*http.Response, error) {
			pass := tracing.FromContext(request.Context())
			sent := pass.Now()
			response, err := next.RoundTrip(request)
			code, answered := "error", 0
			if err == nil {
				code, answered = CodeLabel(response.StatusCode), response.StatusCode
			}
			class := requestclass.Of(request.Context())
			verb, resource := VerbAndResource(request)
			if destination == Target {
				resource = ResourceLabel(resource)
			}
			requestsTotal.WithLabelValues(string(destination), string(class), verb, resource, code).Inc()
			pass.Request(tracing.Request{Destination: string(destination), Class: string(class), Verb: verb, Resource: resource, Code: answered}, sent)
			return response, err
		})
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (r roundTripperFunc) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// VerbAndResource returns the verb and the resource, with its subresource, of a Kubernetes API request. It parses the path:
// [/clusters/x]/api/v1/… or [/clusters/x]/apis/<group>/<version>/…, then
// [namespaces/<ns>/]<resource>[/<name>[/<subresource>]].
func VerbAndResource(request *http.Request) (verb, resource string) {
	parts := resourcePath(request.URL.Path)
	if len(parts) > 2 && parts[0] == "namespaces" && !isNamespaceSubresource(parts[2]) {
		parts = parts[2:]
	}
	switch len(parts) {
	case 0:
		resource = "none"
	case 1, 2:
		resource = parts[0]
	default:
		resource = parts[0] + "/" + parts[2]
	}
	query := request.URL.Query()
	switch request.Method {
	case http.MethodGet:
		switch {
		case query.Get("watch") == "true" || query.Get("watch") == "1":
			verb = "watch"
		case len(parts) == 1:
			verb = "list"
		default:
			verb = "get"
		}
	case http.MethodPost:
		verb = "create"
	case http.MethodPut:
		verb = "update"
	case http.MethodPatch:
		verb = "patch"
		if strings.HasPrefix(request.Header.Get("Content-Type"), "application/apply-patch") {
			verb = "apply"
		}
	default:
		verb = strings.ToLower(request.Method)
	}
	if query.Has("dryRun") {
		verb += " (dry run)"
	}
	return verb, resource
}

func isNamespaceSubresource(part string) bool { return part == "status" || part == "finalize" }

// resourcePath returns the parts of the path after the API version.
func resourcePath(path string) []string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range parts {
		switch {
		case part == "api" && len(parts) > i+1:
			return parts[i+2:]
		case part == "apis" && len(parts) > i+2:
			return parts[i+3:]
		}
	}
	return nil
}
