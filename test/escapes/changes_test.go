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
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/cert"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// The text with which a server ends a watch is shown nowhere: neither by the hub nor, see TestMain, by client-go.
func TestTextsOfWatchesThatEnd(t *testing.T) {
	for name, text := range map[string]string{
		"with the token": "you sent " + token,
		"with ANSI":      "\x1b[2Jgone \u202e",
		"of 2 MB":        strings.Repeat("you sent "+token+" ", 2<<20/len(token)),
	} {
		for reason, code := range map[string]int{"Expired": http.StatusGone, "InternalError": http.StatusInternalServerError} {
			t.Run(fmt.Sprint(name, " and code ", code), func(t *testing.T) {
				asked := make(chan struct{}, 100)
				connection := connectTo(t, true, func(writer http.ResponseWriter, request *http.Request) {
					if request.URL.Path == "/version" {
						answer(200, "application/json", `{"gitVersion":"v1.35.4"}`)(writer, request)
						return
					}
					if request.URL.Query().Get("watch") == "" {
						answer(200, "application/json", `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)(writer, request)
						return
					}
					asked <- struct{}{}
					quoted, _ := json.Marshal(text)
					answer(200, "application/json", fmt.Sprintf(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","message":%s,"reason":%q,"code":%d}}`, quoted, reason, code))(writer, request)
				})
				await(t, connection, targets.ReasonConnected)
				watching := connection.Watches.NewCache(configMaps, targets.CacheOptions{Handler: cache.ResourceEventHandlerFuncs{}})
				go watching.Run(t.Context())
				// The hub watches again after it has handled the end of the first watch.
				for range 3 {
					<-asked
				}
				if health := connection.Health.Get(); !health.Up {
					t.Errorf("the target is down: %+v", health)
				}
				expectHarmless(t, watching.Availability().Message)
			})
		}
	}
}

// After a server's certificate changes, the hub sends no request unless the server proves its identity: by an authority
// that the kubeconfig names, and by being the same cluster.
func TestCertificateThatChanges(t *testing.T) {
	for name, test := range map[string]struct {
		trusted bool
		then    string
		reason  string
	}{
		"to one of nobody":         {false, "one", targets.ReasonUnreachable},
		"with the cluster":         {true, "another", targets.ReasonClusterChanged},
		"of the same cluster only": {true, "one", targets.ReasonConnected},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := newCertificate(t), newCertificate(t)
			var changed atomic.Bool
			var after, asked atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
				id := "one"
				if changed.Load() {
					after.Add(1)
					id = test.then
				}
				if strings.HasSuffix(request.URL.Path, "/kube-system") {
					asked.Add(1)
					answer(200, "application/json", fmt.Sprintf(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"uid":%q}}`, id))(writer, request)
					return
				}
				answer(200, "application/json", `{"gitVersion":"v1.35.4"}`)(writer, request)
			}))
			server.Config.ErrorLog = discarded
			server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
				current := first
				if changed.Load() {
					current = second
				}
				return &tls.Config{Certificates: []tls.Certificate{current.pair}, MinVersion: tls.VersionTLS12}, nil
			}}
			server.StartTLS()
			t.Cleanup(server.Close)
			authorities := first.authority
			if test.trusted {
				authorities += second.authority
			}
			connection := connections.ConnectDirectly(t, newRegistry(t, 0), uid, suite.Kubeconfig(t, server.URL, []byte(authorities), token), kcp.Limits{})
			await(t, connection, targets.ReasonConnected)
			before := asked.Load()

			changed.Store(true)
			server.CloseClientConnections()
			suite.WaitUntil(t, "the hub answers with "+test.reason, func() bool {
				if connection.Health.Get().Reason == test.reason && (!test.trusted || asked.Load() > before) {
					return true
				}
				connection.Health.ProbeNow()
				return false
			})
			expectHarmless(t, connection.Health.Get().Message)
			if !test.trusted && after.Load() > 0 {
				t.Errorf("%d requests were sent to it", after.Load())
			}
		})
	}
}

// certificate is a certificate for the loopback address, with the authority that signed it.
type certificate struct {
	pair      tls.Certificate
	authority string
}

func newCertificate(t *testing.T) certificate {
	t.Helper()
	chain, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.ParseIP("127.0.0.1")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		t.Fatal(err)
	}
	return certificate{pair, string(chain)}
}
