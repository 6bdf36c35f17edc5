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

package faults

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

func TestTunnel(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(writer, "hello") }))
	defer server.Close()
	tunnel, err := NewTunnel(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := url.Parse(tunnel.URL())
	if err != nil {
		t.Fatal(err)
	}
	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.Proxy = http.ProxyURL(proxy)
	defer transport.CloseIdleConnections()
	get := func() (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			return "", err
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close() //nolint:errcheck // the body is read
		content, err := io.ReadAll(response.Body)
		return string(content), err
	}
	if content, err := get(); err != nil || content != "hello" {
		t.Fatalf("got %q, %v", content, err)
	}
	tunnel.Cut()
	if content, err := get(); err == nil {
		t.Errorf("got %q through a connection that is cut", content)
	}
	transport.CloseIdleConnections()
	if content, err := get(); err == nil {
		t.Errorf("got %q through a tunnel that is cut", content)
	}
	if err := tunnel.Close(); err != nil {
		t.Error(err)
	}
}
