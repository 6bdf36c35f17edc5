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

package faults_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/synchub-dev/synchub/test/framework/faults"
)

// The proxy shows each fault until the fault is removed.
func TestProxy(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Authorization") != "Bearer x" {
			writer.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = io.WriteString(writer, strings.Repeat(".", 3*faults.Piece))
	}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	proxy, err := faults.NewProxy(t.Context(), &rest.Config{Host: server.URL, BearerToken: "x", TLSClientConfig: rest.TLSClientConfig{CAData: authority}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	kubeconfig, err := proxy.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	// A client with an older connection may not have noticed yet that the proxy closed it.
	connect := func() *http.Client {
		transport := &http.Transport{TLSClientConfig: trusted, ForceAttemptHTTP2: true}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
	before := connect()
	for _, test := range []struct {
		fault faults.Fault
		// longest is the timeout of the request.
		longest time.Duration
		is      func(code int, body string, err error) bool
	}{
		{faults.None, time.Minute, answered},
		{faults.BlackHole, 100 * time.Millisecond, timedOut},
		{faults.None, time.Minute, answered},
		{faults.Slow, faults.Delay / 4, timedOut},
		{faults.Trickle, faults.Pause / 4, timedOut},
		{faults.Failing, time.Minute, func(code int, _ string, err error) bool { return err == nil && code == http.StatusInternalServerError }},
		{faults.Refused, time.Minute, func(_ int, _ string, err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }},
		{faults.None, time.Minute, answered},
	} {
		if err := proxy.Set(t.Context(), test.fault); err != nil {
			t.Fatal(err)
		}
		clients := []*http.Client{connect()}
		if test.fault == faults.BlackHole {
			clients = append(clients, before)
		}
		for _, client := range clients {
			code, body, err := ask(t.Context(), client, config, test.longest)
			if !test.is(code, body, err) {
				t.Errorf("%s: got %d %q: %v", test.fault, code, body, err)
			}
			before = client
		}
	}
}

func answered(code int, body string, err error) bool {
	return err == nil && code == http.StatusOK && body == strings.Repeat(".", 3*faults.Piece)
}

func timedOut(_ int, _ string, err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// ask returns the status code and the body, and the error if reading the body failed.
func ask(ctx context.Context, client *http.Client, config *rest.Config, longest time.Duration) (code int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host, nil)
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer "+config.BearerToken)
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}
