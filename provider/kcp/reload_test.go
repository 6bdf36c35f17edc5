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

package kcp

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd/api"
)

// logs collects log entries.
type logs struct {
	lines atomic.Pointer[string]
}

func (l *logs) add(prefix, args string) {
	all := prefix + args + "\n"
	if before := l.lines.Load(); before != nil {
		all = *before + all
	}
	l.lines.Store(&all)
}

func (l *logs) text() string {
	if lines := l.lines.Load(); lines != nil {
		return *lines
	}
	return ""
}

func TestReload(t *testing.T) {
	fake := newFakeKCP(t)
	access := mustLoad(t, fake.kubeconfig(t, "first"))
	client, err := kubernetes.NewForConfig(access.WorkspaceConfig("root"))
	if err != nil {
		t.Fatal(err)
	}
	logs := &logs{}
	log := funcr.New(logs.add, funcr.Options{})
	// wantToken fails the test unless the existing client sends the token.
	wantToken := func(want string) {
		t.Helper()
		if _, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := fake.token.Load(); got != want {
			t.Errorf("want the token %s, got %s", want, got)
		}
	}
	wantToken("first")

	for _, step := range []struct {
		name, token string
		content     []byte
	}{
		{"the same content", "first", fake.kubeconfig(t, "first")},
		{"a new token", "second", fake.kubeconfig(t, "second")},
		{"a broken file", "second", []byte("{")},
		{"half a file", "second", fake.kubeconfig(t, "third")[:200]},
		{"an empty file", "second", nil},
		{"a CA that cannot be read", "second", kubeconfig(t, fake.URL, []byte("x"), api.AuthInfo{Token: "third"})},
		{"http", "second", kubeconfig(t, strings.Replace(fake.URL, "https", "http", 1), nil, api.AuthInfo{Token: "third"})},
		{"repaired", "third", fake.kubeconfig(t, "third")},
		{"another workspace of the same server", "fourth", kubeconfig(t, fake.URL+"/clusters/root:other", fake.ca(), api.AuthInfo{Token: "fourth"})},
		{"back to the first", "first", fake.kubeconfig(t, "first")},
	} {
		t.Run(step.name, func(t *testing.T) {
			write(t, access.path, step.content)
			before := logs.text()
			if err := access.reload(log); err != nil {
				t.Fatalf("gave up: %v", err)
			}
			wantToken(step.token)
			if changed := logs.text() != before; changed == (step.name == "the same content") {
				t.Errorf("logged: %v", strings.TrimPrefix(logs.text(), before))
			}
		})
	}

	if err := os.Remove(access.path); err != nil {
		t.Fatal(err)
	}
	if err := access.reload(log); err != nil {
		t.Errorf("gave up when the file was away: %v", err)
	}
	wantToken("first")

	other := newFakeKCP(t)
	write(t, access.path, other.kubeconfig(t, "fifth"))
	err = access.reload(log)
	if err == nil || !strings.Contains(err.Error(), other.URL) || !strings.Contains(err.Error(), fake.URL) {
		t.Errorf("want an error that names both servers, got %v", err)
	}
	wantToken("first")
	if other.token.Load() != nil {
		t.Error("the request was sent to the other server")
	}
	for _, token := range []string{"first", "second", "third", "fourth", "fifth"} {
		if all := logs.text() + fmt.Sprint(err); strings.Contains(all, token) {
			t.Errorf("the token %s was logged: %s", token, all)
		}
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	access := mustLoad(t, newFakeKCP(t).kubeconfig(t, "first"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- access.Watch(ctx, funcr.New(func(string, string) {}, funcr.Options{})) }()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("an ended watch is no failure: %v", err)
	}
}

// Requests during a change of the credentials succeed, without a data race.
func TestReloadUnderRequests(t *testing.T) {
	fake := newFakeKCP(t)
	access := mustLoad(t, fake.kubeconfig(t, "token-0"))
	log := funcr.New(func(string, string) {}, funcr.Options{})
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			if err := listNamespaces(t.Context(), access, access.WorkspaceConfig("root").Host); err != nil {
				done <- err
				return
			}
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
		}
	}()
	for number := range 50 {
		write(t, access.path, fake.kubeconfig(t, fmt.Sprint("token-", number%2)))
		if err := access.reload(log); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
