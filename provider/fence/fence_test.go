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

package fence

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	testingclock "k8s.io/utils/clock/testing"
)

// recorder is a fake server that records requests.
type recorder struct{ sent []string }

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.sent = append(r.sent, request.Method+" "+request.URL.Path)
	return httptest.NewRecorder().Result(), nil
}

func send(t *testing.T, transport http.RoundTripper, method, path string) error {
	t.Helper()
	response, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), method, "https://192.0.2.1"+path, io.NopCloser(strings.NewReader("{}"))))
	if err == nil {
		err = response.Body.Close()
	}
	return err
}

func TestWrapRefusesWritesWhileClosed(t *testing.T) {
	const configMap = "/api/v1/namespaces/team/configmaps/settings"
	for name, test := range map[string]struct {
		method, path string
		write        bool
	}{
		"get":                         {http.MethodGet, configMap, false},
		"watch":                       {http.MethodGet, "/api/v1/configmaps?watch=true", false},
		"create":                      {http.MethodPost, "/api/v1/namespaces/team/configmaps", true},
		"update":                      {http.MethodPut, configMap, true},
		"patch":                       {http.MethodPatch, configMap, true},
		"delete":                      {http.MethodDelete, configMap, true},
		"token":                       {http.MethodPost, "/api/v1/namespaces/team/serviceaccounts/hub/token", true},
		"access review":               {http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", false},
		"who am I":                    {http.MethodPost, "/clusters/root:synchub/apis/authentication.k8s.io/v1/selfsubjectreviews", false},
		"named like a review":         {http.MethodPut, "/apis/example.org/v1/namespaces/team/books/selfsubjectreviews", true},
		"delete of a review":          {http.MethodDelete, "/apis/example.org/v1/selfsubjectreviews", true},
		"unknown verb":                {"REPORT", configMap, true},
		"collection of another group": {http.MethodPost, "/apis/example.org/v1/reviews", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			clock := testingclock.NewFakePassiveClock(time.Now())
			fence, server := New(clock), &recorder{}
			transport := fence.Wrap(server)
			err := send(t, transport, test.method, test.path)
			if !test.write {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ErrClosed))
			g.Expect(server.sent).To(BeEmpty())

			fence.OpenUntil(clock.Now().Add(time.Second))
			g.Expect(send(t, transport, test.method, test.path)).To(Succeed())
			clock.SetTime(clock.Now().Add(time.Second))
			g.Expect(send(t, transport, test.method, test.path)).To(MatchError(ErrClosed), "after its time")
			fence.OpenUntil(clock.Now().Add(time.Hour))
			fence.Close()
			g.Expect(send(t, transport, test.method, test.path)).To(MatchError(ErrClosed))
			g.Expect(server.sent).To(HaveLen(1))
		})
	}
}

// A write that the fence let through is not sent if the fence closes while a connection is being made.
func TestFenceClosesBeforeTheFirstConnection(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			g := NewWithT(t)
			received := make(chan string, 2)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
				if body, err := io.ReadAll(request.Body); err == nil {
					received <- request.Proto + " " + string(body)
				}
			}))
			server.EnableHTTP2 = protocol == "HTTP/2.0"
			server.StartTLS()
			defer server.Close()
			clock := testingclock.NewFakePassiveClock(time.Now())
			fence, closes := New(clock), false
			fence.OpenUntil(clock.Now().Add(time.Hour))
			direct := server.Client().Transport.(*http.Transport)
			direct.DisableKeepAlives = true
			var dialer net.Dialer
			direct.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				if closes {
					fence.Close()
				}
				return dialer.DialContext(ctx, network, server.Listener.Addr().String())
			}
			client := &http.Client{Transport: fence.Wrap(direct)}
			write := func() error {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, server.URL, strings.NewReader("{}"))
				g.Expect(err).NotTo(HaveOccurred())
				response, err := client.Do(request)
				if err == nil {
					err = response.Body.Close()
				}
				return err
			}
			g.Expect(write()).To(Succeed())
			g.Expect(received).To(Receive(Equal(protocol + " {}")))
			closes = true
			g.Expect(write()).To(MatchError(ErrClosed))
			server.Close()
			g.Expect(received).NotTo(Receive())
		})
	}
}

func TestNilFenceIsOpen(t *testing.T) {
	g := NewWithT(t)
	var fence *Fence
	server := &recorder{}
	g.Expect(fence.IsOpen()).To(BeTrue())
	g.Expect(send(t, fence.Wrap(server), http.MethodDelete, "/api/v1/namespaces/team")).To(Succeed())
}

func TestDeadlineByEitherClock(t *testing.T) {
	now := time.Now()
	past, future := now.Add(-time.Second), now.Add(time.Second)
	for name, test := range map[string]struct {
		deadline deadline
		want     bool
	}{
		"neither":                          {deadline{future, future.Round(0)}, false},
		"both":                             {deadline{past, past.Round(0)}, true},
		"the machine was paused":           {deadline{future, past.Round(0)}, true},
		"the wall clock was set back":      {deadline{past, future.Round(0)}, true},
		"at this moment by the monotonic":  {deadline{now, future.Round(0)}, true},
		"at this moment by the wall clock": {deadline{future, now.Round(0)}, true},
	} {
		if got := test.deadline.isOver(now); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// fakeLock is the lock of a server that is slow, and fails on request.
type fakeLock struct {
	resourcelock.Interface
	err     error
	onWrite func()
	record  resourcelock.LeaderElectionRecord
}

func (l *fakeLock) Identity() string { return "one" }

func (l *fakeLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &l.record, nil, l.err
}

func (l *fakeLock) Create(context.Context, resourcelock.LeaderElectionRecord) error {
	l.onWrite()
	return l.err
}

func (l *fakeLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Create(ctx, record)
}

func TestLockOpensTheFenceFromTheBeginningOfAWrite(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakePassiveClock(time.Now())
	fence := New(clock)
	server := &fakeLock{onWrite: func() { clock.SetTime(clock.Now().Add(4 * time.Second)) }}
	lock := fence.Lock(server, 10*time.Second)
	mine, released := resourcelock.LeaderElectionRecord{HolderIdentity: "one"}, resourcelock.LeaderElectionRecord{}

	g.Expect(lock.Create(t.Context(), mine)).To(Succeed())
	g.Expect(fence.IsOpen()).To(BeTrue())
	clock.SetTime(clock.Now().Add(6 * time.Second))
	g.Expect(fence.IsOpen()).To(BeFalse(), "the answer came four seconds after the request")

	g.Expect(lock.Update(t.Context(), mine)).To(Succeed())
	server.err = errors.New("conflict")
	g.Expect(lock.Update(t.Context(), mine)).To(MatchError("conflict"))
	g.Expect(fence.IsOpen()).To(BeTrue(), "until the time of the last success is over")
	clock.SetTime(clock.Now().Add(2 * time.Second))
	g.Expect(fence.IsOpen()).To(BeFalse())

	server.err = nil
	g.Expect(lock.Update(t.Context(), mine)).To(Succeed())
	server.onWrite = func() { g.Expect(fence.IsOpen()).To(BeFalse(), "before the release is sent") }
	g.Expect(lock.Update(t.Context(), released)).To(Succeed())
	g.Expect(fence.IsOpen()).To(BeFalse())

	server.onWrite = func() { t.Error("the Lease is released although another replica may hold it") }
	g.Expect(lock.Update(t.Context(), released)).To(MatchError(ErrNotHeld))
}

func TestLockClosesTheFenceWhenAnotherReplicaHoldsIt(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakePassiveClock(time.Now())
	fence := New(clock)
	server := &fakeLock{onWrite: func() {}, record: resourcelock.LeaderElectionRecord{HolderIdentity: "one"}}
	lock := fence.Lock(server, time.Hour)
	g.Expect(lock.Update(t.Context(), server.record)).To(Succeed())
	_, _, err := lock.Get(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(fence.IsOpen()).To(BeTrue())

	server.err = errors.New("timeout")
	server.record.HolderIdentity = "two"
	_, _, err = lock.Get(t.Context())
	g.Expect(err).To(MatchError("timeout"))
	g.Expect(fence.IsOpen()).To(BeTrue(), "a request without an answer changes nothing")

	server.err = nil
	_, _, err = lock.Get(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(fence.IsOpen()).To(BeFalse())
}
