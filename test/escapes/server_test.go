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

package escapes

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

const (
	token = "a-bearer-token-that-nobody-may-see-0123456789" //nolint:gosec // it opens nothing
	// mostAllocated limits the total allocations of the test process, including the server, in one row.
	mostAllocated = 256 << 20
	mib           = 1 << 20
	uid           = types.UID("hostile")
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// bomb is gzip of 256 MiB of repeated text. Each part is compressed separately: a single stream would take longer than the
// timeout of a request.
var bomb = sync.OnceValue(func() []byte {
	return append(packed([]byte(`{"gitVersion":"`)), bytes.Repeat(packed(bytes.Repeat([]byte("x"), mib)), 256)...)
})

func packed(text []byte) []byte {
	var into bytes.Buffer
	writer := gzip.NewWriter(&into)
	_, _ = writer.Write(text)
	_ = writer.Close()
	return into.Bytes()
}

func inflating(writer http.ResponseWriter, _ *http.Request) {
	writer.Header().Set("Content-Type", "application/json")
	writer.Header().Set("Content-Encoding", "gzip")
	_, _ = writer.Write(bomb())
}

// endless writes a beginning, and then repeats a part for ever.
func endless(begin, part string) http.HandlerFunc {
	return func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(writer, begin)
		for many := strings.Repeat(part, 1+(32<<10)/len(part)); err == nil; {
			_, err = io.WriteString(writer, many)
		}
	}
}

// answer writes one answer.
func answer(code int, contentType, body string) http.HandlerFunc {
	return func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("Content-Type", contentType)
		writer.WriteHeader(code)
		_, _ = io.WriteString(writer, body)
	}
}

func status(code int, message string) http.HandlerFunc {
	return answer(code, "application/json", fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":%d,"message":%q}`, code, message))
}

// hanging writes nothing more until the client closes the request. It may finish its response at that same moment.
func hanging(begin string) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		if begin != "" {
			answer(http.StatusOK, "application/json", begin)(writer, request)
			writer.(http.Flusher).Flush()
		}
		<-request.Context().Done()
	}
}

// reset breaks off in the middle of a response: HTTP/2 by RST_STREAM, HTTP/1.1 by closing the connection.
func reset(begin string) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		answer(http.StatusOK, "application/json", begin)(writer, request)
		writer.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// Kinds of requests to a target.
var (
	get = func(ctx context.Context, c *targets.Connection) error {
		_, err := c.Objects.Get(ctx, configMaps, types.NamespacedName{Namespace: "a", Name: "b"})
		return err
	}
	list = func(ctx context.Context, c *targets.Connection) error {
		_, err := c.Objects.HasNoObjects(ctx, configMaps, "")
		return err
	}
	page = func(ctx context.Context, c *targets.Connection) error {
		_, err := c.Objects.ListMetadata(ctx, configMaps, "", "", "")
		return err
	}
	patch = func(ctx context.Context, c *targets.Connection) error {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "b", "namespace": "a"}}}
		_, err := c.Objects.Apply(ctx, configMaps, object, "uid")
		return err
	}
	discover = func(ctx context.Context, c *targets.Connection) error {
		_, _, err := c.APIs.ResolveResource(ctx, configMaps)
		return err
	}
	openAPI = func(ctx context.Context, c *targets.Connection) error {
		_, err := c.Discovery.RESTClient().Get().AbsPath("/openapi/v3").Do(ctx).Raw()
		return err
	}
	// watch returns once the target is quarantined.
	watch = func(ctx context.Context, c *targets.Connection) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		watching := c.Watches.NewCache(configMaps, targets.CacheOptions{Handler: cache.ResourceEventHandlerFuncs{}})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			watching.Run(ctx)
		}()
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil && c.Health.IsUp() {
			<-ticker.C
		}
		cancel()
		<-ended
		return fmt.Errorf("%s", c.Health.Get().Message)
	}
)

const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","namespace":"a","uid":"u","resourceVersion":"1"`

// behaviours are the responses of a server to all requests except the one for its version.
var behaviours = map[string]struct {
	serve http.HandlerFunc
	ask   func(context.Context, *targets.Connection) error
	// want is a part of the error. reason is why the target is quarantined; empty if it is not.
	want, reason string
	// brief ends the request after a moment.
	brief bool
	// headers is true if it depends on the protocol whether the target is quarantined or only the request fails.
	headers bool
}{
	"an object that inflates":  {inflating, get, "has more than 4194304 bytes", targets.ReasonTooLarge, false, false},
	"a list that inflates":     {inflating, list, "has more than 16777216 bytes", targets.ReasonTooLarge, false, false},
	"metadata that inflates":   {inflating, page, "has more than 2097152 bytes", targets.ReasonTooLarge, false, false},
	"a patch that inflates":    {inflating, patch, "has more than 4194304 bytes", targets.ReasonTooLarge, false, false},
	"discovery that inflates":  {inflating, discover, "has more than 2097152 bytes", targets.ReasonTooLarge, false, false},
	"OpenAPI that inflates":    {inflating, openAPI, "has more than 16777216 bytes", targets.ReasonTooLarge, false, false},
	"an event that inflates":   {inflating, watch, "has more than", targets.ReasonTooLarge, false, false},
	"an endless object":        {endless(object+`},"data":{"x":"`, "x"), get, "has more than 4194304 bytes", targets.ReasonTooLarge, false, false},
	"an endless event":         {endless(`{"type":"ADDED","object":{"x":"`, "x"), watch, "has more than", targets.ReasonTooLarge, false, false},
	"an object of little maps": {endless(object+`},"x":[{}`, ",{}"), get, "524288 values", targets.ReasonTooLarge, false, false},
	"a page of nothing":        {endless(`{"apiVersion":"v1","kind":"ConfigMapList","items":[{}`, ",{}"), list, "524288 values", targets.ReasonTooLarge, false, false},
	"deep JSON":                {answer(200, "application/json", object+`},"x":`+strings.Repeat("[", 100_000)), get, "depth", "", false, false},
	"truncated JSON":           {answer(200, "application/json", object), get, "unexpected end of JSON input", "", false, false},
	"HTML":                     {answer(200, "text/html", "<html>"+token), get, "answers with JSON", targets.ReasonNotAnAPIServer, false, false},
	"YAML that multiplies":     {answer(200, "application/yaml", "a: &a [x]\nb: [*a]"), get, "answers with JSON", targets.ReasonNotAnAPIServer, false, false},
	"CBOR":                     {answer(200, "application/cbor", "\xd9\xd9\xf7\xa0"), get, "answers with JSON", targets.ReasonNotAnAPIServer, false, false},
	"a type with the token":    {answer(200, "text/"+token, "x"), get, "answers with JSON", targets.ReasonNotAnAPIServer, false, false},
	"slow headers":             {hanging(""), get, "context deadline exceeded", "", true, false},
	"a slow body":              {hanging(object), get, "", "", true, false},
	"a slow list":              {hanging(`{"items":[`), list, "", "", true, false},
	"a redirect": {func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://127.0.0.2:1/", http.StatusFound)
	}, get, "302", "", false, false},
	"a permanent redirect of a patch": {func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://127.0.0.2:1/", http.StatusPermanentRedirect)
	}, patch, "", "", false, false},
	"5 MB of text with the token":  {status(403, strings.Repeat("you sent "+token+" ", 1<<17)), get, "over 64 KiB", "", false, false},
	"a text with the token":        {status(403, "you sent "+token), get, "you sent (redacted)", "", false, false},
	"a text with ANSI":             {status(403, "\x1b[2Jgone \u202e"), get, `\x1b[2Jgone \u202e`, "", false, false},
	"HTML of a panic":              {answer(500, "text/html", "<h1>panic: "+token+"</h1>"), get, "", "", false, false},
	"plain text with the token":    {answer(500, "text/plain", "panic: Bearer "+token), get, "panic: (redacted)", "", false, false},
	"a panic":                      {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, patch, "", "", false, false},
	"an object that is reset":      {reset(object), get, "", "", false, false},
	"a list that is reset":         {reset(`{"apiVersion":"v1","kind":"ConfigMapList","items":[`), list, "", "", false, false},
	"metadata that is reset":       {reset(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","items":[`), page, "", "", false, false},
	"the answer to a patch, reset": {reset(object + "}"), patch, "", "", false, false},
	"discovery that is reset":      {reset(`{"kind":"APIResourceList","resources":[`), discover, "", "", false, false},
	"a flood of 1xx": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 4<<10))
		for range 1000 {
			w.WriteHeader(http.StatusEarlyHints)
		}
		w.WriteHeader(http.StatusOK)
	}, patch, "", "", false, true},
	"huge headers": {func(w http.ResponseWriter, _ *http.Request) {
		for i := range 1000 {
			w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 4<<10))
		}
		w.WriteHeader(http.StatusOK)
	}, patch, "", "", false, true},
	"a flood of warnings": {func(w http.ResponseWriter, r *http.Request) {
		for range 100 {
			w.Header().Add("Warning", `299 - "you sent `+token+`"`)
		}
		status(404, "no")(w, r)
	}, get, "no", "", false, false},
}

func TestHostileServers(t *testing.T) {
	for name, test := range behaviours {
		for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
			t.Run(name+" over "+protocol, func(t *testing.T) {
				connection := connectTo(t, protocol == "HTTP/2", func(writer http.ResponseWriter, request *http.Request) {
					if request.URL.Path == "/version" {
						answer(200, "application/json", `{"gitVersion":"v1.35.4"}`)(writer, request)
						return
					}
					test.serve(writer, request)
				})
				await(t, connection, targets.ReasonConnected)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if test.brief {
					ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
				}
				defer cancel()
				before := allocated()
				err := test.ask(ctx, connection)
				if err == nil {
					t.Fatal("it was taken for an answer")
				}
				if text := connection.RedactError(err); !strings.Contains(err.Error(), test.want) && !strings.Contains(text, test.want) {
					t.Errorf("want %q, got %q", test.want, err)
				}
				expectHarmless(t, err.Error())
				expectHarmless(t, connection.RedactError(err))
				if spent := allocated() - before; spent > mostAllocated {
					t.Errorf("it took %d MiB", spent/mib)
				}
				if test.reason != "" {
					await(t, connection, test.reason)
					expectHarmless(t, connection.Health.Get().Message)
				} else if health := connection.Health.Get(); !health.Up && !test.headers {
					t.Errorf("the target is down: %+v", health)
				}
			})
		}
	}
}

func TestHostileVersions(t *testing.T) {
	for name, test := range map[string]struct {
		serve        http.HandlerFunc
		reason, want string
	}{
		"one that inflates":  {inflating, targets.ReasonTooLarge, "its version has more than 65536 bytes"},
		"an endless one":     {endless(`{"gitVersion":"`, "x"), targets.ReasonTooLarge, "its version has more than 65536 bytes"},
		"an endless nothing": {endless("", " "), targets.ReasonTooLarge, "its version has more than 65536 bytes"},
		"HTML":               {answer(200, "text/html", "<html>"), targets.ReasonNotAnAPIServer, "answers with JSON"},
		"no JSON":            {answer(200, "application/json", token), targets.ReasonUnreachable, "not a version"},
		"unauthorized":       {answer(401, "text/plain", "no such token: "+token), targets.ReasonUnauthorized, ""},
		"a panic":            {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, targets.ReasonUnreachable, ""},
		"a giant error":      {status(503, strings.Repeat(token, 1<<17)), targets.ReasonUnreachable, ""},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.2:1/version", http.StatusFound)
		}, targets.ReasonUnreachable, ""},
		"one with characters": {answer(200, "application/json", `{"gitVersion":"v1\u001b[31m`+strings.Repeat("9", 1000)+`"}`), targets.ReasonConnected, "answers"},
	} {
		t.Run(name, func(t *testing.T) {
			before := allocated()
			connection := connectTo(t, false, test.serve)
			await(t, connection, test.reason)
			health := connection.Health.Get()
			if !strings.Contains(health.Message, test.want) {
				t.Errorf("want %q, got %q", test.want, health.Message)
			}
			expectHarmless(t, health.Message)
			expectHarmless(t, health.Version)
			if len(health.Version) > 64 {
				t.Errorf("got a version of %d bytes", len(health.Version))
			}
			if spent := allocated() - before; spent > mostAllocated {
				t.Errorf("it took %d MiB", spent/mib)
			}
		})
	}
}

// A target with more objects than the limit is quarantined, for each form of its lists.
func TestCachesOverTheirLimits(t *testing.T) {
	for name, serve := range map[string]http.HandlerFunc{
		"in a watch": func(writer http.ResponseWriter, request *http.Request) {
			writer.Header().Set("Content-Type", "application/json")
			for i := 0; request.Context().Err() == nil; i++ {
				if _, err := fmt.Fprintf(writer, `{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b%d","namespace":"a","uid":"u","resourceVersion":"1"}}}`+"\n", i); err != nil {
					return
				}
			}
		},
		"in pages without an end": func(writer http.ResponseWriter, request *http.Request) {
			if request.URL.Query().Get("watch") != "" {
				answer(http.StatusBadRequest, "text/plain", "no watch begins with a list here")(writer, request)
				return
			}
			items := strings.Repeat(object+"}},", 99) + object + "}}"
			answer(200, "application/json", `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"1","continue":"more"},"items":[`+items+`]}`)(writer, request)
		},
	} {
		t.Run(name, func(t *testing.T) {
			connection := connectTo(t, false, func(writer http.ResponseWriter, request *http.Request) {
				if request.URL.Path == "/version" {
					answer(200, "application/json", `{"gitVersion":"v1.35.4"}`)(writer, request)
					return
				}
				serve(writer, request)
			})
			await(t, connection, targets.ReasonConnected)
			_ = watch(t.Context(), connection)
			await(t, connection, targets.ReasonCacheFull)
		})
	}
}

// The hub sends no request to a server whose certificate changes, and does not quote the new certificate.
func TestAnotherCertificate(t *testing.T) {
	server := newServer(t, false, answer(200, "application/json", `{"gitVersion":"v1.35.4"}`))
	connection := connect(t, suite.Kubeconfig(t, strings.Replace(server.URL, "127.0.0.1", "127.0.0.2", 1), suite.CertificateOf(server), token))
	await(t, connection, targets.ReasonUnreachable)
	if message := connection.Health.Get().Message; !strings.Contains(message, "(") || strings.Contains(message, "127.0.0") {
		t.Errorf("got %q", message)
	}
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// expectHarmless fails if a text could harm its readers.
func expectHarmless(t *testing.T, text string) {
	t.Helper()
	if !isHarmless(text) {
		t.Errorf("it is shown: %q", text)
	}
}

func isHarmless(text string) bool {
	return !strings.Contains(text, token[:20]) && !strings.ContainsAny(text, "\x1b\u202e\n") && len(text) <= 1024
}

func newServer(t *testing.T, http2 bool, serve http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(serve)
	server.EnableHTTP2 = http2
	server.Config.ErrorLog = discarded
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// newRegistry returns a running registry. totalBytes limits the caches of all targets together.
func newRegistry(t *testing.T, totalBytes int64) *targets.Registry {
	t.Helper()
	return connections.NewRegistry(t, targets.Options{
		Log:         funcr.New(func(_, args string) { expectHarmless(t, args) }, funcr.Options{Verbosity: 10}),
		CacheLimits: targets.CacheLimits{Objects: 10_000, Bytes: 64 * mib},
		TotalBytes:  totalBytes,
	})
}

func connect(t *testing.T, kubeconfig []byte) *targets.Connection {
	t.Helper()
	return connections.Connect(t, newRegistry(t, 0), uid, kubeconfig, kcp.Limits{})
}

func connectTo(t *testing.T, http2 bool, serve http.HandlerFunc) *targets.Connection {
	t.Helper()
	return connect(t, serveTarget(t, http2, serve))
}

// serveTarget starts a server that does not reveal its cluster identity, and returns a kubeconfig for it.
func serveTarget(t *testing.T, http2 bool, serve http.HandlerFunc) (kubeconfig []byte) {
	t.Helper()
	server := newServer(t, http2, func(writer http.ResponseWriter, request *http.Request) {
		if !framework.AnswerWithoutClusterID(writer, request) {
			serve(writer, request)
		}
	})
	return suite.Kubeconfig(t, server.URL, suite.CertificateOf(server), token)
}

// await returns once the target's health has the reason.
func await(t *testing.T, connection *targets.Connection, reason string) {
	t.Helper()
	suite.Eventually(t, func(g Gomega) {
		g.Expect(connection.Health.Get().Reason).To(Equal(reason), "%+v", connection.Health.Get())
	})
}
