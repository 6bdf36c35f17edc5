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

package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/test/tier"
)

func TestKindOf(t *testing.T) {
	for path, want := range map[string]requestKind{
		"/version": kindVersion, "/clusters/root/version": kindVersion, "/readyz": kindHealth, "/api": kindDiscovery, "/apis": kindDiscovery, "/api/v1": kindDiscovery,
		"/apis/apps": kindDiscovery, "/apis/apps/v1": kindDiscovery, "/openapi/v3/apis/apps/v1": kindOpenAPI,
		"/api/v1/pods": kindList, "/api/v1/namespaces": kindList, "/api/v1/namespaces/a/pods": kindList, "/apis/apps/v1/deployments": kindList,
		"/apis/apps/v1/namespaces/a/deployments?limit=1": kindList, "/clusters/*/apis/apps/v1/deployments": kindList,
		"/api/v1/namespaces/a": kindObject, "/api/v1/namespaces/a/pods/p": kindObject, "/apis/apps/v1/namespaces/a/deployments/d/status": kindObject, "/api/v1/nodes/n": kindObject,
		"/api/v1/pods?watch=true": kindWatch, "/api/v1/pods?a=b&watch=1": kindWatch, "/api/v1/pods?xwatch=true": kindList, "/api/v1/pods?labelSelector=watch%3Dtrue": kindList,
		// Names of objects must not change the limits.
		"/api/v1/namespaces/a/configmaps/version": kindObject, "/apis/apps/v1/namespaces/a/deployments/readyz": kindObject, "/api/v1/namespaces/healthz": kindObject,
		"/apis/acme.io/v1/version": kindList, "/apis/acme.io/v1/version?watch=true": kindWatch, "/apis/acme.io/version": kindDiscovery,
		"/api/v1/namespaces/openapi/pods": kindList, "/api/v1/namespaces/openapi/pods?watch=true": kindWatch, "/api/v1/namespaces/openapi/pods/livez": kindObject,
		"/api/v1/namespaces/apis/pods": kindList, "/api/v1/namespaces/apis/pods/p": kindObject, "/apis/apps/v1/namespaces/api/deployments": kindList,
		"/clusters/*/api/v1/namespaces/apis/pods": kindList, "/openapi/v2": kindOpenAPI, "/openapi/v3": kindOpenAPI, "/openapi/v3/api/v1": kindOpenAPI,
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://host"+path, nil)
		if got := requestKindOf(request, ""); got != want {
			t.Errorf("%s is %s, not %s", path, got, want)
		}
	}
	for _, base := range []string{"/openapi", "/api/v4", "/apis", "/x/openapi/y", "/a/version"} {
		for path, want := range map[string]requestKind{"/version": kindVersion, "/api/v1": kindDiscovery, "/api/v1/pods": kindList, "/api/v1/namespaces/a/pods/p": kindObject, "/api/v1/pods?watch=true": kindWatch} {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://host"+base+path, nil)
			if got := requestKindOf(request, base); got != want {
				t.Errorf("%s at %s is %s, not %s", path, base, got, want)
			}
		}
	}
	for path, want := range map[string]requestKind{
		"/apis/authorization.k8s.io/v1/selfsubjectrulesreviews": kindReview, "/api/v1/namespaces/a/serviceaccounts/b/token": kindReview, "/api/v1/namespaces/a/pods": kindObject,
		"/apis/authentication.k8s.io/v1/tokenreviews": kindReview, "/apis/rbac.authorization.k8s.io/v1/clusterroles/c": kindObject,
		"/api/v1/namespaces/a/configmaps/token": kindObject, "/api/v1/namespaces/a/serviceaccounts/token": kindObject, "/api/v1/namespaces/serviceaccounts/secrets/token": kindObject,
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://host"+path, nil)
		if got := requestKindOf(request, ""); got != want {
			t.Errorf("a POST to %s is %s, not %s", path, got, want)
		}
	}
}

// roundTripperFunc is a fake server.
type roundTripperFunc func(*http.Request) (*http.Response, error)

func (a roundTripperFunc) RoundTrip(request *http.Request) (*http.Response, error) { return a(request) }

func respond(code int, contentType string, body io.Reader) roundTripperFunc {
	return func(request *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(body), ContentLength: -1, Request: request}, nil
	}
}

// repeatingReader repeats a text.
type repeatingReader struct{ text string }

func (e repeatingReader) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = e.text[i%len(e.text)]
	}
	return len(into), nil
}

func TestMetadataWatchesAreBoundedForAnyReader(t *testing.T) {
	for name, test := range map[string]struct{ contentType, text string }{
		"an endless object": {"application/json;stream=watch", "{\"a\":\n1,"},
		"an endless text":   {"application/json", `"a`},
		"white space":       {"application/json", " \n"},
		"a giant frame":     {"application/vnd.kubernetes.protobuf;stream=watch", "\x7f\xff\xff\xff"},
	} {
		t.Run(name, func(t *testing.T) {
			var reported error
			limits := TargetLimits()
			limits.JSON = false
			bounded := LimitResponses(Options{Limits: limits, OnMisbehaviour: func(err error) { reported = err }})(respond(200, test.contentType, repeatingReader{test.text}))
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://host/api/v1/pods?watch=true", nil)
			response, err := bounded.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			read, err := io.Copy(io.Discard, response.Body)
			if _, ok := errors.AsType[*ExceededError](err); !ok || reported == nil || read > limits.Event+1<<20 {
				t.Errorf("got %d bytes and %v, reported %v", read, err, reported)
			}
			_ = response.Body.Close()
		})
	}
}

func TestAWatchOfManyEventsIsNotBounded(t *testing.T) {
	event := `{"type":"ADDED","object":{"x":"}{` + strings.Repeat("x", 1<<20) + `"}}` + "\n"
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		text := strings.Repeat(event, 20)
		if strings.HasSuffix(contentType, "protobuf") {
			text = strings.Repeat("\x00\x10\x00\x00"+strings.Repeat("x", 1<<20), 20)
		}
		bounded := LimitResponses(Options{Limits: KCPLimits()})(respond(200, contentType, strings.NewReader(text)))
		response, err := bounded.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://host/api/v1/pods?watch=1", nil))
		if err != nil {
			t.Fatal(err)
		}
		if read, err := io.Copy(io.Discard, response.Body); err != nil || read != int64(len(text)) {
			t.Errorf("%s: got %d of %d bytes, %v", contentType, read, len(text), err)
		}
		_ = response.Body.Close()
	}
}

// Each request has a deadline.
func TestRequestsEnd(t *testing.T) {
	for query, want := range map[string]time.Duration{"": targetLimits.Time, "watch=true&timeoutSeconds=300": 300*time.Second + targetLimits.Time, "watch=true": time.Hour} {
		bounded := LimitResponses(Options{Limits: TargetLimits()})(roundTripperFunc(func(request *http.Request) (*http.Response, error) {
			deadline, ok := request.Context().Deadline()
			if left := time.Until(deadline); !ok || left > want || left < want-time.Minute {
				t.Errorf("%q ends in %s, want %s", query, left, want)
			}
			return nil, io.EOF
		}))
		if _, err := bounded.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://host/api/v1/pods?"+query, nil)); !errors.Is(err, io.EOF) { //nolint:bodyclose // there is none
			t.Errorf("got %v", err)
		}
	}
}

// A page that is too large is no misbehaviour: the client can request a smaller page.
func TestPagesCanBeSmaller(t *testing.T) {
	for limit, divisible := range map[int]bool{0: false, 1: false, 2: true, 500: true} {
		reported := 0
		bounded := LimitResponses(Options{Limits: TargetLimits(), OnMisbehaviour: func(error) { reported++ }})(respond(200, "application/json", repeatingReader{"x"}))
		response, err := bounded.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://host/api/v1/pods?"+url.Values{"limit": {fmt.Sprint(limit)}}.Encode(), nil))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if exceeded, ok := errors.AsType[*ExceededError](err); !ok || exceeded.Divisible != divisible || (reported == 0) != divisible {
			t.Errorf("limit %d: got %v, reported %d times", limit, err, reported)
		}
	}
}

func BenchmarkObject(b *testing.B) {
	body, _ := json.Marshal(map[string]any{"kind": "ConfigMap", "data": map[string]string{"a": strings.Repeat("x", 2000)}})
	run := func(b *testing.B, wrap func(http.RoundTripper) http.RoundTripper) {
		server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
			writer.Header().Set("Content-Type", "application/json")
			_, _ = writer.Write(body)
		}))
		defer server.Close()
		client := &http.Client{Transport: wrap(&http.Transport{})}
		// The hub's requests for objects have a deadline.
		ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
		defer cancel()
		b.ReportAllocs()
		for b.Loop() {
			request, _ := http.NewRequestWithContext(ctx, http.MethodPatch, server.URL+"/api/v1/namespaces/a/configmaps/b", bytes.NewReader(body))
			response, err := client.Do(request)
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}
	b.Run("bare", func(b *testing.B) { run(b, func(next http.RoundTripper) http.RoundTripper { return next }) })
	b.Run("bounded", func(b *testing.B) { run(b, LimitResponses(Options{Limits: TargetLimits()})) })
}

// The largest objects that a tenant can create are read in pages within the limit.
func TestLargeObjectsAreReadInSmallPages(t *testing.T) {
	tier.Thorough(t)
	const count, size = 40, 1_500_000
	limits := MailboxLimits()
	largest, requests := 0, 0
	bounded := LimitResponses(Options{Limits: limits, OnMisbehaviour: func(err error) { t.Error(err) }})(roundTripperFunc(func(request *http.Request) (*http.Response, error) {
		query := request.URL.Query()
		limit, _ := strconv.Atoi(query.Get("limit"))
		from, _ := strconv.Atoi(query.Get("continue"))
		page := strings.Repeat(`"`+strings.Repeat("x", size)+`",`, min(limit, count-from))
		body := io.NopCloser(strings.NewReader("[" + strings.TrimSuffix(page, ",") + "]"))
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, ContentLength: -1, Request: request}, nil
	}))
	list := func(_ context.Context, options metav1.ListOptions) (items []string, err error) {
		requests++
		url := fmt.Sprintf("https://host/api/v1/pods?limit=%d&continue=%s", options.Limit, options.Continue)
		response, err := bounded.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))
		if err != nil {
			return nil, err
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		largest = max(largest, len(text))
		if err != nil {
			return nil, err
		}
		return items, json.Unmarshal(text, &items)
	}
	for read := 0; read < count; {
		options := metav1.ListOptions{Limit: 500, Continue: strconv.Itoa(read)}
		page, err := ListPage(t.Context(), &options, list)
		if err != nil || len(page) == 0 {
			t.Fatalf("got %d objects and %v after %d", len(page), err, read)
		}
		read += len(page)
	}
	if int64(largest) > limits.Page+1 || requests > 5*count {
		t.Errorf("%d requests, the largest answer has %d bytes", requests, largest)
	}
	if limits.Page < limits.Object {
		t.Error("an object may be larger than a page")
	}
}

// Clients obey Retry-After, and a watch has no other deadline.
func TestRetryAfterIsCapped(t *testing.T) {
	for header, want := range map[string]string{"": "", "5": "5", "999999": "30", "9999999999999999999999": "", "-7": "-7", "Wed, 21 Oct 2099 07:28:00 GMT": ""} {
		for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
			server := roundTripperFunc(func(request *http.Request) (*http.Response, error) {
				response, err := respond(code, "application/json", strings.NewReader("{}"))(request)
				response.Header.Set("Retry-After", header)
				return response, err
			})
			response, err := LimitResponses(Options{Limits: TargetLimits()})(server).RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://host/api/v1/pods?watch=true", nil))
			if err != nil {
				t.Fatal(err)
			}
			if got := response.Header.Get("Retry-After"); got != want {
				t.Errorf("%d with the header %q: want %q, got %q", code, header, want, got)
			}
			_ = response.Body.Close()
		}
	}
}

// Three bytes can become an item of hundreds of bytes. A long text counts as one value.
func TestValuesAreBounded(t *testing.T) {
	// Each item has two values. items has too many for an object, some only for a page.
	items, some, commas := strings.Repeat("{},", 1<<19), strings.Repeat("{},", 3<<16), strings.Repeat(`,{[\"\\`, 1<<19)
	for name, test := range map[string]struct {
		path, text string
		divisible  bool
		want       string
	}{
		"an object of many values":    {"configmaps/c", `{"a":[` + items + items + `{}]}`, false, "values"},
		"an object with long texts":   {"configmaps/c", `{"a":"` + commas[:3<<20] + `"}`, false, ""},
		"a page of many items":        {"configmaps?limit=500", `{"items":[` + some + `{}]}`, true, "values"},
		"an object of as many":        {"configmaps/c", `{"a":[` + some + `{}]}`, false, ""},
		"an event of as many":         {"configmaps?watch=true", `{"type":"ADDED","object":{"a":[` + some + `{}]}}`, false, ""},
		"a page of long texts":        {"configmaps?limit=500", `{"items":["` + commas[:3<<20] + `"]}`, true, ""},
		"an event of many values":     {"configmaps?watch=true", `{"type":"ADDED","object":{"a":[` + items + `{}]}}`, false, "values"},
		"an event with long texts":    {"configmaps?watch=true", `{"type":"ADDED","object":{"a":"` + commas[:3<<20] + `"}}`, false, ""},
		"many events of a few values": {"configmaps?watch=true", strings.Repeat(`{"type":"ADDED","object":{"a":[{},{},{}]}}`+"\n", 1<<17), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			reported := 0
			bounded := LimitResponses(Options{Limits: TargetLimits(), OnMisbehaviour: func(error) { reported++ }})(respond(200, "application/json", strings.NewReader(test.text)))
			response, err := bounded.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://host/api/v1/namespaces/n/"+test.path, nil))
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			exceeded, ok := errors.AsType[*ExceededError](err)
			if ok != (test.want != "") || ok && (exceeded.Unit != test.want || exceeded.Divisible != test.divisible) {
				t.Errorf("want to exceed %q, got %v", test.want, err)
			}
			if parks := test.want != "" && !test.divisible; (reported > 0) != parks {
				t.Errorf("reported %d times", reported)
			}
		})
	}
}

// The hub neither requests nor accepts protobuf from targets, since it does not count the values in protobuf.
func TestTargetsAnswerWithJSON(t *testing.T) {
	const options = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	for name, test := range map[string]struct {
		limits Limits
		want   string
		taken  bool
	}{"a target": {TargetLimits(), "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", false}, "kcp": {KCPLimits(), options, true}} {
		accept := ""
		bounded := LimitResponses(Options{Limits: test.limits})(roundTripperFunc(func(request *http.Request) (*http.Response, error) {
			accept = request.Header.Get("Accept")
			return respond(200, "application/vnd.kubernetes.protobuf", strings.NewReader("k8s"))(request)
		}))
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://host/api/v1/pods?limit=500", nil)
		request.Header.Set("Accept", options)
		response, err := bounded.RoundTrip(request)
		if err == nil {
			_ = response.Body.Close()
		}
		if accept != test.want || (err == nil) != test.taken || request.Header.Get("Accept") != options {
			t.Errorf("%s was requested with %q: %v", name, accept, err)
		}
	}
}
