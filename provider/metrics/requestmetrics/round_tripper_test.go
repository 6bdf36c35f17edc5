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
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/tracing"
)

func TestDescribe(t *testing.T) {
	const apply = "application/apply-patch+yaml"
	for _, test := range []struct {
		method, path, contentType string
		verb, resource            string
	}{
		// Verbs.
		{"GET", "/api/v1/pods", "", "list", "pods"},
		{"GET", "/api/v1/pods?watch=true&resourceVersion=1", "", "watch", "pods"},
		{"GET", "/api/v1/pods?watch=1", "", "watch", "pods"},
		{"GET", "/api/v1/pods?watch=false", "", "list", "pods"},
		{"GET", "/api/v1/pods?labelSelector=watch%3Dtrue", "", "list", "pods"},
		{"GET", "/api/v1/nodes/n", "", "get", "nodes"},
		{"POST", "/api/v1/nodes", "application/json", "create", "nodes"},
		{"PUT", "/api/v1/nodes/n", "application/json", "update", "nodes"},
		{"PATCH", "/api/v1/nodes/n", "application/merge-patch+json", "patch", "nodes"},
		{"PATCH", "/api/v1/nodes/n", "", "patch", "nodes"},
		{"PATCH", "/api/v1/nodes/n", apply, "apply", "nodes"},
		{"PATCH", "/api/v1/nodes/n?fieldManager=x&force=true", "application/apply-patch+cbor", "apply", "nodes"},
		{"DELETE", "/api/v1/nodes/n", "", "delete", "nodes"},
		{"HEAD", "/api/v1/nodes/n", "", "head", "nodes"},

		// Namespaces, and objects in namespaces.
		{"GET", "/api/v1/namespaces", "", "list", "namespaces"},
		{"GET", "/api/v1/namespaces?watch=true", "", "watch", "namespaces"},
		{"GET", "/api/v1/namespaces/a", "", "get", "namespaces"},
		{"DELETE", "/api/v1/namespaces/a", "", "delete", "namespaces"},
		{"PATCH", "/api/v1/namespaces/a/status", apply, "apply", "namespaces/status"},
		{"PUT", "/api/v1/namespaces/a/finalize", "", "update", "namespaces/finalize"},
		{"GET", "/api/v1/namespaces/a/configmaps", "", "list", "configmaps"},
		{"GET", "/api/v1/namespaces/a/configmaps?watch=true", "", "watch", "configmaps"},
		{"GET", "/api/v1/namespaces/a/configmaps/c", "", "get", "configmaps"},
		{"POST", "/api/v1/namespaces/a/configmaps", "", "create", "configmaps"},
		{"GET", "/api/v1/namespaces/api/configmaps/apis", "", "get", "configmaps"},
		{"GET", "/api/v1/namespaces/namespaces/configmaps/namespaces", "", "get", "configmaps"},
		{"GET", "/api/v1/namespaces/status/configmaps", "", "list", "configmaps"},

		// Groups and subresources.
		{"GET", "/apis/apps/v1/deployments", "", "list", "deployments"},
		{"PATCH", "/apis/apps/v1/namespaces/a/deployments/d", apply, "apply", "deployments"},
		{"PATCH", "/apis/apps/v1/namespaces/a/deployments/d/status", "application/merge-patch+json", "patch", "deployments/status"},
		{"GET", "/apis/apps/v1/namespaces/a/deployments/d/scale", "", "get", "deployments/scale"},
		{"GET", "/api/v1/namespaces/a/services/http:s:80/proxy/api/v1/pods", "", "get", "services/proxy"},
		{"PATCH", "/apis/example.com/v1/things/t/status", "", "patch", "things/status"},
		{"GET", "/apis/api/v1/apis/apis", "", "get", "apis"},

		// Dry runs.
		{"PATCH", "/api/v1/nodes/n?dryRun=All", apply, "apply (dry run)", "nodes"},
		{"POST", "/api/v1/namespaces/a/pods?dryRun=All", "", "create (dry run)", "pods"},

		// Through a workspace, by path and by name, and through the virtual workspace.
		{"GET", "/clusters/root:org:ws/api/v1/namespaces/a/configmaps/c", "", "get", "configmaps"},
		{"GET", "/clusters/2f5wd0xyz/apis/apps/v1/namespaces/a/deployments", "", "list", "deployments"},
		{"GET", "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/w", "", "get", "workspaces"},
		{"GET", "/clusters/*/apis/apis.kcp.io/v1alpha2/apibindings?watch=true", "", "watch", "apibindings"},
		{"GET", "/services/apiexport/1a2b/mailbox.edge.kubestellar.io/clusters/*/api/v1/configmaps?watch=true", "", "watch", "configmaps"},
		{"GET", "/services/apiexport/1a2b/mailbox.edge.kubestellar.io/clusters/*/apis/apps/v1/deployments", "", "list", "deployments"},
		{"PATCH", "/services/apiexport/1a2b/mailbox.edge.kubestellar.io/clusters/2f5wd0xyz/apis/apps/v1/namespaces/a/deployments/d/status", "application/merge-patch+json", "patch", "deployments/status"},
		{"POST", "/services/apiexport/1a2b/mailbox.edge.kubestellar.io/clusters/2f5wd0xyz/api/v1/namespaces/a/events", "", "create", "events"},
		{"PUT", "/services/apiexport/1a2b/mailbox.edge.kubestellar.io/clusters/2f5wd0xyz/api/v1/namespaces/a", "", "update", "namespaces"},

		// Discovery, health and other paths without a resource.
		{"GET", "/api", "", "get", "none"},
		{"GET", "/api/", "", "get", "none"},
		{"GET", "/api/v1", "", "get", "none"},
		{"GET", "/apis", "", "get", "none"},
		{"GET", "/apis/apps", "", "get", "none"},
		{"GET", "/apis/apps/v1", "", "get", "none"},
		{"GET", "/apis/apps/v1/", "", "get", "none"},
		{"GET", "/clusters/root:org/apis", "", "get", "none"},
		{"GET", "/clusters/root:org/api/v1", "", "get", "none"},
		{"GET", "/version", "", "get", "none"},
		{"GET", "/readyz", "", "get", "none"},
		{"GET", "/openapi/v3/apis/apps", "", "get", "none"},
		{"GET", "/", "", "get", "none"},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), test.method, "https://127.0.0.1:6443"+test.path, nil)
			request.Header.Set("Content-Type", test.contentType)
			if verb, resource := VerbAndResource(request); verb != test.verb || resource != test.resource {
				t.Errorf("want %s of %s, got %s of %s", test.verb, test.resource, verb, resource)
			}
		})
	}
}

func FuzzDescribe(f *testing.F) {
	f.Add("GET", "/api/v1/namespaces/a/pods/p/log", "watch=true", "")
	f.Add("PATCH", "/apis///", "dryRun", "application/apply-patch+yaml")
	f.Add("", "", "%", "\x00")
	f.Add("X", "api/apis/api/apis/api", "", "")
	f.Fuzz(func(t *testing.T, method, path, query, contentType string) {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1", nil)
		request.Method, request.URL.Path, request.URL.RawQuery = method, path, query
		request.Header.Set("Content-Type", contentType)
		verb, resource := VerbAndResource(request)
		if strings.Count(resource, "/") > 1 {
			t.Errorf("%q gives the resource %q: names would become metrics", path, resource)
		}
		if verb == "" && method != "" {
			t.Errorf("%q gives no verb", method)
		}
	})
}

// send sends a request through a counting transport. It returns the status code of the response, or 0 if there was none.
func send(ctx context.Context, t *testing.T, side Destination, method, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: InstrumentRoundTripper(side)(http.DefaultTransport)}).Do(request)
	if err != nil {
		return 0
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	return response.StatusCode
}

func TestCount(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		code, err := strconv.Atoi(request.URL.Query().Get("answer"))
		if err != nil {
			t.Error(err)
		}
		writer.WriteHeader(code)
	}))
	defer server.Close()
	gone := httptest.NewServer(nil)
	gone.Close()

	ctx := t.Context()
	for name, test := range map[string]struct {
		ctx  context.Context
		side Destination
		host string
		code int
		want []string // side, class and code
	}{
		"object":              {requestclass.With(ctx, requestclass.Object), Target, server.URL, 200, []string{"target", "object", "200"}},
		"extra":               {requestclass.With(ctx, requestclass.Extra), Mailbox, server.URL, 409, []string{"mailbox", "extra", "409"}},
		"background":          {requestclass.With(ctx, requestclass.Background), Control, server.URL, 200, []string{"control", "background", "200"}},
		"without a class":     {ctx, Target, server.URL, 500, []string{"target", "background", "500"}},
		"the innermost class": {requestclass.With(requestclass.With(ctx, requestclass.Object), requestclass.Extra), Target, server.URL, 200, []string{"target", "extra", "200"}},
		"no answer":           {requestclass.With(ctx, requestclass.Object), Target, gone.URL, 0, []string{"target", "object", "error"}},
	} {
		t.Run(name, func(t *testing.T) {
			// Counters are never reset, so each case has a resource of its own.
			resource := "counted-" + strings.ReplaceAll(name, " ", "-")
			RegisterResource(schema.GroupResource{Resource: resource})
			before := testutil.CollectAndCount(requestsTotal)
			for range 3 {
				if code := send(test.ctx, t, test.side, http.MethodDelete, fmt.Sprintf("%s/api/v1/%s/x?answer=%d", test.host, resource, test.code)); code != test.code {
					t.Errorf("the answer did not pass: want %d, got %d", test.code, code)
				}
			}
			if got := testutil.ToFloat64(requestsTotal.WithLabelValues(test.want[0], test.want[1], "delete", resource, test.want[2])); got != 3 {
				t.Errorf("want 3 requests of %v, counted %v", test.want, got)
			}
			if series := testutil.CollectAndCount(requestsTotal) - before; series != 1 {
				t.Errorf("the requests have %d series", series)
			}
		})
	}
}

// A request of a traced pass is in its trace, with the answer.
func TestRequestsOfATracedPass(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) { writer.WriteHeader(http.StatusConflict) }))
	defer server.Close()
	spans := tracetest.NewInMemoryExporter()
	tracer := tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), clock.RealClock{})
	ctx := requestclass.With(tracing.NewContext(t.Context(), tracer.Pass(tracing.Subject{}, time.Time{}, "mailbox")), requestclass.Extra)
	send(ctx, t, Mailbox, http.MethodPut, server.URL+"/apis/apps/v1/namespaces/a/deployments/d/status")
	send(requestclass.With(t.Context(), requestclass.Extra), t, Mailbox, http.MethodPut, server.URL+"/api/v1/configmaps/x")
	all := spans.GetSpans()
	if len(all) != 1 || all[0].Name != "update mailbox" {
		t.Fatalf("the spans are %v", all)
	}
	want := attribute.NewSet(
		attribute.String("synchub.destination", "mailbox"), attribute.String("synchub.class", "extra"), attribute.String("synchub.verb", "update"),
		attribute.String("synchub.request.resource", "deployments/status"), attribute.Int("http.response.status_code", http.StatusConflict),
	)
	if got := attribute.NewSet(all[0].Attributes...); !got.Equals(&want) {
		t.Errorf("the attributes are %v", all[0].Attributes)
	}
}

// Neither the status codes nor the resource names of a target create an unlimited number of series.
func TestATargetMakesFewSeries(t *testing.T) {
	code := 100
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) { writer.WriteHeader(code) }))
	defer server.Close()
	before := testutil.CollectAndCount(requestsTotal)
	for code = 400; code < 600; code++ {
		send(t.Context(), t, Target, http.MethodOptions, fmt.Sprintf("%s/apis/g/v/random-%d/x/random-%d", server.URL, code, code))
	}
	if series := testutil.CollectAndCount(requestsTotal) - before; series > 20 {
		t.Errorf("200 answers made %d series", series)
	}
	for resource, want := range map[string]string{"namespaces": "namespaces", "namespaces/status": "namespaces/status", "namespaces/x": OtherLabel, "x": OtherLabel, "": OtherLabel} {
		if got := ResourceLabel(resource); got != want {
			t.Errorf("%q is labelled %q", resource, got)
		}
	}
	for code, want := range map[int]string{200: "200", 201: "201", 418: "4xx", 599: "5xx", 999: OtherLabel, 0: OtherLabel} {
		if got := CodeLabel(code); got != want {
			t.Errorf("%d is labelled %q", code, got)
		}
	}
}

func TestCollectorsAreWellFormed(t *testing.T) {
	if len(Collectors()) == 0 {
		t.Fatal("no metrics")
	}
	for _, collector := range Collectors() {
		problems, err := testutil.CollectAndLint(collector)
		if err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	}
}
