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
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
)

// guard lets only the user's own browser reach the page. Other programs of this machine, other users of it, and pages of other
// origins that the browser shows can all send requests to the port.
type guard struct {
	port int
	// token is in the printed address. The browser exchanges it for a cookie with the session.
	token, session string
	page           http.Handler
}

func newGuard(port int, page http.Handler) *guard {
	return &guard{port: port, token: rand.Text(), session: rand.Text(), page: page}
}

const loginPath = "/login"

// loginURL returns the address that logs a browser in.
func (g *guard) loginURL() string {
	address := url.URL{Scheme: "http", Host: g.host("127.0.0.1"), Path: loginPath, RawQuery: url.Values{"token": {g.token}}.Encode()}
	return address.String()
}

func (g *guard) host(name string) string { return net.JoinHostPort(name, strconv.Itoa(g.port)) }

// cookieName has the port: browsers send cookies to all ports of a host.
func (g *guard) cookieName() string { return fmt.Sprintf("synchub-ui-%d", g.port) }

// contentSecurityPolicy lets the page load its own script, style sheet, icon and data, and nothing else. No other page may embed it.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func setSecurityHeaders(header http.Header) {
	header.Set("Content-Security-Policy", contentSecurityPolicy)
	header.Set("Cross-Origin-Embedder-Policy", "require-corp")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSecurityHeaders(w.Header())
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "The page only reads.", http.StatusMethodNotAllowed)
	case r.Host != g.host("127.0.0.1") && r.Host != g.host("localhost"):
		// A name that somebody else's DNS resolves to the loopback address has another origin than the page.
		http.Error(w, "The page has another address.", http.StatusMisdirectedRequest)
	case r.URL.Path == loginPath:
		g.login(w, r)
	case !isSameOrigin(r):
		http.Error(w, "Another page sent the request.", http.StatusForbidden)
	case !g.hasSession(r):
		http.Error(w, "Open the address that kubectl synchub ui has printed.", http.StatusUnauthorized)
	default:
		g.page.ServeHTTP(w, r)
	}
}

// isSameOrigin reports whether the user or the page itself made the request. A page on another port is of the same site, so the
// browser sends the cookie with its requests. Requests of other programs than browsers lack the header.
func isSameOrigin(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "none" || site == "same-origin"
}

func (g *guard) hasSession(r *http.Request) bool {
	cookie, err := r.Cookie(g.cookieName())
	return err == nil && isEqual(cookie.Value, g.session)
}

// login exchanges the token for the cookie. It does not redirect: a browser that came from another site would not send a cookie
// with SameSite=Strict to the next address. The page it leaves has no token in its history then.
func (g *guard) login(w http.ResponseWriter, r *http.Request) {
	if !isEqual(r.URL.Query().Get("token"), g.token) {
		http.Error(w, "The token is wrong. Open the address that kubectl synchub ui has printed.", http.StatusUnauthorized)
		return
	}
	//nolint:gosec // The connection does not leave this machine, so it has no TLS, and a secure cookie would not be sent.
	http.SetCookie(w, &http.Cookie{Name: g.cookieName(), Value: g.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.Header().Set("Refresh", "0; url=/")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte("<!doctype html><html lang=\"en\"><title>synchub</title><link rel=\"icon\" href=\"/assets/icon.svg\"><p><a href=\"/\">Open the page</a>"))
}

func isEqual(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
