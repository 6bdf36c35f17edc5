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

package ui

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// answer is the response to a request.
type answer struct {
	StatusCode int
	Status     string
	Header     http.Header
	cookies    []*http.Cookie
}

func (a *answer) Cookies() []*http.Cookie { return a.cookies }

// serveGuard returns a guard before a page, and what it answers to a request for an address.
func serveGuard(t *testing.T) (*guard, func(change func(*http.Request)) *answer) {
	t.Helper()
	g := newGuard(8080, newServer(nil, newChanges()))
	return g, func(change func(*http.Request)) *answer {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:8080/", nil)
		request.Header.Set("Cookie", g.cookieName()+"="+g.session)
		change(request)
		recorder := httptest.NewRecorder()
		g.ServeHTTP(recorder, request)
		response := recorder.Result()
		defer response.Body.Close() //nolint:errcheck // it was recorded
		return &answer{response.StatusCode, response.Status, response.Header, response.Cookies()}
	}
}

func TestGuard(t *testing.T) {
	_, ask := serveGuard(t)
	for name, test := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"the user":                {func(*http.Request) {}, http.StatusOK},
		"by another name":         {func(r *http.Request) { r.Host = "localhost:8080" }, http.StatusOK},
		"the page itself":         {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }, http.StatusOK},
		"a typed address":         {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, http.StatusOK},
		"a page on another port":  {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		"another site":            {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"no cookie":               {func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusUnauthorized},
		"a wrong cookie":          {func(r *http.Request) { r.Header.Set("Cookie", "synchub-ui-8080=a") }, http.StatusUnauthorized},
		"a rebound name":          {func(r *http.Request) { r.Host = "evil.example.com:8080" }, http.StatusMisdirectedRequest},
		"another port":            {func(r *http.Request) { r.Host = "127.0.0.1" }, http.StatusMisdirectedRequest},
		"a write":                 {func(r *http.Request) { r.Method = http.MethodPost }, http.StatusMethodNotAllowed},
		"an asset without cookie": {func(r *http.Request) { r.URL.Path = "/assets/live.js"; r.Header.Del("Cookie") }, http.StatusUnauthorized},
		"an asset":                {func(r *http.Request) { r.URL.Path = "/assets/live.js" }, http.StatusOK},
		"no page":                 {func(r *http.Request) { r.URL.Path = "/targets/a/b" }, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			response := ask(test.change)
			if response.StatusCode != test.want {
				t.Errorf("got %s", response.Status)
			}
			for _, header := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials"} {
				if response.Header.Get(header) != "" {
					t.Errorf("it sets %s", header)
				}
			}
			if got := response.Header.Get("Content-Security-Policy"); got != contentSecurityPolicy {
				t.Errorf("the policy is %q", got)
			}
			if got := response.Header.Get("Referrer-Policy") + " " + response.Header.Get("X-Content-Type-Options") + " " + response.Header.Get("Cache-Control"); got != "no-referrer nosniff no-store" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// The policy lets nothing run that is part of a page.
func TestContentSecurityPolicy(t *testing.T) {
	if strings.Contains(contentSecurityPolicy, "unsafe") || strings.Contains(contentSecurityPolicy, "*") || !strings.HasPrefix(contentSecurityPolicy, "default-src 'none'; ") {
		t.Error(contentSecurityPolicy)
	}
}

func TestLogin(t *testing.T) { //nolint:gocyclo // one session, in its order
	g, ask := serveGuard(t)
	login := func(address string) *answer {
		parsed, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return ask(func(r *http.Request) {
			r.URL = parsed
			r.Header.Del("Cookie")
			// The user followed a link in a terminal that is a web page.
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		})
	}
	if !strings.HasPrefix(g.loginURL(), "http://127.0.0.1:8080/login?token=") {
		t.Errorf("the address is %s", g.loginURL())
	}
	for _, address := range []string{"/login", "/login?token=", "/login?token=" + g.session} {
		if response := login(address); response.StatusCode != http.StatusUnauthorized || len(response.Cookies()) > 0 {
			t.Errorf("%s: %s", address, response.Status)
		}
	}
	response := login(g.loginURL())
	cookies := response.Cookies()
	if response.StatusCode != http.StatusOK || response.Header.Get("Refresh") != "0; url=/" || len(cookies) != 1 {
		t.Fatalf("got %s, %v", response.Status, response.Header)
	}
	if cookie := cookies[0]; cookie.Value != g.session || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Domain != "" || cookie.Value == g.token {
		t.Errorf("the cookie is %v", cookie)
	}
	if other := newGuard(8080, nil); other.token == g.token || other.session == g.session || len(g.token) < 20 {
		t.Error("the secrets are not random")
	}
}
