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

package tunnel

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/targets/tunnel/protocol"
	"github.com/synchub-dev/synchub/test/tier"
)

func pemOf(raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

// Requests reach the API server with the credentials of the cluster, and the hub's do not. An API server may have HTTP/2 turned off.
func TestRequestsThroughATunnel(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/2": true, "HTTP/1.1": false} {
		t.Run(name, func(t *testing.T) { testRequests(t, startClusterWith(t, http2, echo)) })
	}
}

func testRequests(t *testing.T, c *cluster) {
	t.Helper()
	g := NewWithT(t)
	h := startHub(t, "one", 1)
	_, err := h.get(t, "/version")
	g.Expect(IsClosed(err)).To(BeTrue())
	startClient(t, h.address(), h.admit(t, florin).Token, c)
	host := strings.TrimPrefix(c.URL, "https://")
	g.Eventually(func() (string, error) { return h.get(t, "/api/v1/namespaces/a%2Fb?watch=1&x=%20") }, patience).Should(
		Equal("200 GET " + host + " /api/v1/namespaces/a%2Fb?watch=1&x=%20|Bearer of-the-cluster|"))

	send := func(method, target string) (status int, body string) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		t.Cleanup(cancel)
		request, err := http.NewRequestWithContext(ctx, method, target, nil)
		g.Expect(err).NotTo(HaveOccurred())
		request.Header.Set("Authorization", "Bearer of-the-hub")
		request.Header.Set("Impersonate-User", "team")
		response, err := h.Transport(florin).RoundTrip(request)
		g.Expect(err).NotTo(HaveOccurred())
		defer func() { _ = response.Body.Close() }()
		content, err := io.ReadAll(response.Body)
		g.Expect(err).NotTo(HaveOccurred())
		return response.StatusCode, string(content)
	}
	_, body := send(http.MethodPost, "https://elsewhere.example.com/x")
	g.Expect(body).To(Equal("POST " + host + " /x|Bearer of-the-cluster|team"))
	status, _ := send(http.MethodConnect, "https://elsewhere.example.com:443")
	g.Expect(status).To(Equal(http.StatusMethodNotAllowed))
}

// An API server that does not respond is reported without its address.
func TestAPIServerIsGone(t *testing.T) {
	g := NewWithT(t)
	h, c := startHub(t, "one", 1), startCluster(t, echo)
	startClient(t, h.address(), h.admit(t, florin).Token, c)
	g.Eventually(func() (string, error) { return h.get(t, "/version") }, patience).Should(HavePrefix("200"))
	c.Close()
	g.Expect(h.get(t, "/version")).To(Equal("502 the tunnel is open, but its end in the cluster does not reach the API server"))
}

func TestAuthentication(t *testing.T) {
	h := startHub(t, "one", 1)
	token, otherToken := h.admit(t, florin).Token, h.admit(t, zloty).Token
	long := func(header string, length int) string {
		return header + ": " + strings.Repeat("x", length) + "\r\n"
	}
	for name, test := range map[string]struct {
		syncTarget         types.UID
		token, extra, want string
	}{
		"the token":                       {florin, token, "", "101 Switching Protocols"},
		"no token":                        {florin, "", "", "401 Unauthorized"},
		"a wrong token":                   {florin, token + "x", "", "401 Unauthorized"},
		"the token of another SyncTarget": {florin, otherToken, "", "401 Unauthorized"},
		"an unknown SyncTarget":           {"euro", token, "", "401 Unauthorized"},
		"no SyncTarget":                   {"", token, "", "401 Unauthorized"},
		"a longer path":                   {florin + "/x", token, "", "401 Unauthorized"},
		"headers that are too long":       {florin, token, long("X", 64<<10), "431 Request Header Fields Too Large"},
		"other replicas":                  {zloty, otherToken, protocol.HeaderConnected + ": two,three\r\n", "101 Switching Protocols"},
	} {
		t.Run(name, func(t *testing.T) {
			_, response, err := handshake(t, h, test.syncTarget, test.token, test.extra)
			if !strings.HasPrefix(response, "HTTP/1.1 "+test.want) {
				t.Errorf("want %s, got %q (%v)", test.want, response, err)
			}
		})
	}
}

// A client has a session with each replica, finds new ones, and connects again when one ends.
func TestReplicas(t *testing.T) {
	g := NewWithT(t)
	one, two, c := startHub(t, "one", 2), startHub(t, "two", 2), startCluster(t, echo)
	credential := one.admit(t, florin)
	two.Admit(florin, credential)
	balanced := startRelay(t, one.address(), two.address())
	p := startClient(t, balanced.address(), credential.Token, c)
	for _, replica := range []*hub{one, two} {
		g.Eventually(func() (string, error) { return replica.get(t, "/version") }, patience).Should(HavePrefix("200"))
	}
	g.Eventually(p.Sessions, patience).Should(Equal(2))
	before := one.changes.Load()
	balanced.cut()
	// Lost sessions are replaced, and requests wait for that.
	for _, replica := range []*hub{one, two} {
		g.Eventually(func() (string, error) { return replica.get(t, "/version") }, patience).Should(HavePrefix("200"))
	}
	g.Expect(one.changes.Load()).To(BeNumerically(">", before))
	g.Eventually(p.Sessions, patience).Should(Equal(2))
}

// The newer of two clients of a cluster gets the session, and the other one waits until that session ends.
func TestTwoClientsOfOneCluster(t *testing.T) {
	g := NewWithT(t)
	named := func(name string) *cluster {
		return startCluster(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })
	}
	h := startHub(t, "one", 1)
	token := h.admit(t, florin).Token
	responds := func() (string, error) { return h.get(t, "/version") }
	startClient(t, h.address(), token, named("first"))
	g.Eventually(responds, patience).Should(Equal("200 first"))
	second := startClient(t, h.address(), token, named("second"))
	g.Eventually(responds, patience).Should(Equal("200 second"))
	opened := h.changes.Load()
	for range 20 {
		g.Expect(responds()).To(Equal("200 second"))
	}
	g.Expect(h.changes.Load()).To(Equal(opened))
	second.stop()
	g.Eventually(responds, patience).Should(Equal("200 first"))
}

// A session to another cluster is not used, and does not affect the current session.
func TestRefusedCluster(t *testing.T) {
	g := NewWithT(t)
	h, c := startHub(t, "one", 1), startCluster(t, echo)
	token := h.admit(t, florin).Token
	refuse := errors.New("it is another cluster")
	h.refuse.Store(&refuse)
	intruder := startClient(t, h.address(), token, c)
	responds := func() (string, error) { return h.get(t, "/version") }
	g.Eventually(func() error { _, err := responds(); return err }, patience).Should(MatchError(refuse))
	g.Expect(h.Refusal(florin)).To(MatchError(refuse))
	g.Expect(c.served.Load()).To(BeZero())
	intruder.stop()

	h.refuse.Store(nil)
	h.Reconsider(florin)
	startClient(t, h.address(), token, c)
	g.Eventually(responds, patience).Should(HavePrefix("200"))
	h.refuse.Store(&refuse)
	startClient(t, h.address(), token, startCluster(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	g.Eventually(func() error { return h.Refusal(florin) }, patience).Should(MatchError(refuse))
	g.Expect(responds()).To(HavePrefix("200"))
}

// A new token causes no gap while the one before is accepted.
func TestRotation(t *testing.T) {
	g := NewWithT(t)
	h, c := startHub(t, "one", 1), startCluster(t, echo)
	first := h.admit(t, florin)
	p := startClient(t, h.address(), first.Token, c)
	responds := func() (string, error) { return h.get(t, "/version") }
	g.Eventually(responds, patience).Should(HavePrefix("200"))
	second, err := first.Rotate(time.Now().Add(time.Hour))
	g.Expect(err).NotTo(HaveOccurred())
	h.Admit(florin, second)
	g.Expect(responds()).To(HavePrefix("200"))
	before := h.current()
	g.Expect(os.WriteFile(p.token, []byte(second.Token), 0o600)).To(Succeed())
	g.Eventually(func() bool { now := h.current(); return now != nil && now != before }, patience).Should(BeTrue())
	g.Expect(responds()).To(HavePrefix("200"))
	// The first token ends, the session by the second one does not.
	h.Admit(florin, Credential{Token: second.Token})
	g.Expect(responds()).To(HavePrefix("200"))
	_, response, _ := handshake(t, h, florin, first.Token)
	g.Expect(response).To(HavePrefix("HTTP/1.1 401"))
	// A token that is revoked closes its session.
	third, err := NewCredential()
	g.Expect(err).NotTo(HaveOccurred())
	h.Admit(florin, third)
	g.Eventually(func() error { _, err := responds(); return err }, patience).Should(MatchError(ContainSubstring("the tunnel to the cluster is closed")))
}

// Responses are streamed, also many at once, and a request that is cancelled ends at the API server.
func TestManyWatches(t *testing.T) {
	g := NewWithT(t)
	const watches = 1000
	ended := make(chan struct{}, watches)
	h := startHub(t, "one", 1)
	c := startCluster(t, func(w http.ResponseWriter, request *http.Request) {
		_, _ = fmt.Fprintln(w, "event")
		_ = http.NewResponseController(w).Flush()
		<-request.Context().Done()
		ended <- struct{}{}
	})
	startClient(t, h.address(), h.admit(t, florin).Token, c)
	g.Eventually(func() bool { return h.current() != nil }, patience).Should(BeTrue())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range watches {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cluster.tunnel/watch", nil)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := h.Transport(florin).RoundTrip(request) //nolint:bodyclose // it ends with its context
		g.Expect(err).NotTo(HaveOccurred())
		event := make([]byte, len("event\n"))
		_, err = io.ReadFull(response.Body, event)
		g.Expect(err).NotTo(HaveOccurred())
	}
	cancel()
	for range watches {
		g.Eventually(ended, patience).Should(Receive())
	}
}

// A response that nobody reads delays no other one.
func TestUnreadResponse(t *testing.T) {
	const large = protocol.StreamBuffer + 64<<10
	g := NewWithT(t)
	h := startHub(t, "one", 1)
	c := startCluster(t, func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/large" {
			_, _ = w.Write(make([]byte, large))
		}
	})
	startClient(t, h.address(), h.admit(t, florin).Token, c)
	g.Eventually(func() (string, error) { return h.get(t, "/small") }, patience).Should(Equal("200 "))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var unread []*http.Response
	// Each response fills its own buffer, and all of them together less than the buffer of the connection.
	for range protocol.ConnectionBuffer/protocol.StreamBuffer - 2 {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cluster.tunnel/large", nil)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := h.Transport(florin).RoundTrip(request) //nolint:bodyclose // it ends with its context
		g.Expect(err).NotTo(HaveOccurred())
		unread = append(unread, response) //nolint:bodyclose // it ends with its context
	}
	g.Expect(h.get(t, "/small")).To(Equal("200 "))
	for _, response := range unread {
		size, err := io.Copy(io.Discard, response.Body)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(size).To(BeEquivalentTo(large))
	}
}

// A network that drops all data looks like silence. Both ends close the connection, and the client opens another one.
func TestHalfOpenConnection(t *testing.T) {
	tier.Thorough(t)
	g := NewWithT(t)
	h, c := startHub(t, "one", 1), startCluster(t, echo)
	relay := startRelay(t, h.address())
	startClient(t, relay.address(), h.admit(t, florin).Token, c)
	g.Eventually(func() (string, error) { return h.get(t, "/version") }, patience).Should(HavePrefix("200"))
	lost := h.current()
	relay.swallow.Store(true)
	g.Eventually(lost.ended, patience).Should(BeClosed())
	relay.swallow.Store(false)
	relay.cut()
	g.Eventually(func() (string, error) { return h.get(t, "/version") }, patience).Should(HavePrefix("200"))
}

// The hub's port renews its certificate without a restart, and clients trust it by its authority.
func TestRenewedCertificate(t *testing.T) {
	g := NewWithT(t)
	h, c := startHub(t, "one", 1), startCluster(t, echo)
	p := startClient(t, h.address(), h.admit(t, florin).Token, c)
	g.Eventually(func() (string, error) { return h.get(t, "/version") }, patience).Should(HavePrefix("200"))
	h.authority.lock.Lock()
	before := h.authority.serving
	h.authority.renewAt = time.Time{}
	h.authority.lock.Unlock()
	h.current().close()
	g.Eventually(func() (string, error) { return h.get(t, "/version") }, patience).Should(HavePrefix("200"))
	g.Eventually(p.Sessions, patience).Should(Equal(1))
	h.authority.lock.Lock()
	defer h.authority.lock.Unlock()
	g.Expect(h.authority.serving).NotTo(Equal(before))
}
