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
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/provider/fastjson"
	"github.com/synchub-dev/synchub/provider/redact"
)

const secretToken = "s3cr3t-Token-of-A-target-0123456789"

// answer returns the part of a server's answer that the hub reads.
func answer(t *testing.T, options Options, respond func(*http.Response)) (response *http.Response, body string, err error) {
	t.Helper()
	if options.Limits == (Limits{}) {
		options.Limits = TargetLimits()
	}
	options.Credentials = redact.CredentialsOf(secretToken)
	server := roundTripperFunc(func(request *http.Request) (*http.Response, error) {
		made := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: request, Body: io.NopCloser(strings.NewReader("{}")), ContentLength: -1}
		respond(made)
		return made, nil
	})
	response, err = LimitResponses(options)(server).RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://host/api/v1/namespaces/a/pods/b", nil))
	if err != nil {
		return nil, "", err
	}
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response, string(content), nil
}

// Users do not get a credential that a target puts into the text of an error.
func TestErrorTextsAreRedacted(t *testing.T) {
	status := func(change func(*metav1.Status)) string {
		made := &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Message: "no", Code: 403}
		change(made)
		text, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	long := strings.Repeat("x", 10_000)
	for name, test := range map[string]struct {
		mediaType, body string
		// wantType is the resulting media type, and wantPart a part of the resulting text.
		wantType, wantPart string
	}{
		"a text":                 {"text/plain", "no " + secretToken + ", go", "text/plain", "no (redacted), go"},
		"HTML":                   {"text/html", "<html>" + secretToken + "</html>", "text/plain", "(redacted)"},
		"JSON that is no Status": {"application/json", `{"kind": "Widget", "message": "` + secretToken + `"}`, "text/plain", "(redacted)"},
		"a message":              {"application/json", status(func(s *metav1.Status) { s.Message = "token " + secretToken }), "application/json", "token (redacted)"},
		"a cause": {"application/json", status(func(s *metav1.Status) {
			s.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: secretToken}}}
		}), "application/json", "(redacted)"},
		"a long text":               {"text/plain", long + secretToken, "text/plain", "…"},
		"a long message":            {"application/json", status(func(s *metav1.Status) { s.Message = long + secretToken }), "application/json", "…"},
		"a text without end":        {"text/plain", strings.Repeat(secretToken+" ", 5000), "text/plain", errorTextTooLong},
		"a Status without end":      {"application/json", status(func(s *metav1.Status) { s.Message = strings.Repeat(secretToken+" ", 5000) }), "text/plain", errorTextTooLong},
		"an Authorization header":   {"text/plain", "got Authorization: Bearer abcdef0123", "text/plain", "(redacted)"},
		"a Status of another shape": {"application/json", `{"kind": "Status", "message": {"a": "` + secretToken + `"}}`, "text/plain", "(redacted)"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			response, body, err := answer(t, Options{}, func(made *http.Response) { //nolint:bodyclose // answer closes it
				made.StatusCode, made.Status = http.StatusForbidden, "403 "+secretToken
				made.Header.Set("Content-Type", test.mediaType)
				made.Header.Set("Content-Encoding", "identity")
				made.Body = io.NopCloser(strings.NewReader(test.body))
			})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(body).To(ContainSubstring(test.wantPart))
			for _, text := range []string{body, response.Status, fmt.Sprint(response.Header)} {
				g.Expect(text).NotTo(ContainSubstring(secretToken[:10]))
			}
			g.Expect(len(body)).To(BeNumerically("<", 4*TargetLimits().Text))
			g.Expect(response.Header.Get("Content-Type")).To(Equal(test.wantType))
			g.Expect(response.Header.Get("Content-Encoding")).To(BeEmpty())
			g.Expect(response.ContentLength).To(BeEquivalentTo(len(body)))
			g.Expect(response.Status).To(Equal("403 Forbidden"))
		})
	}
}

// Headers that clients would log or follow do not reach them.
func TestHeadersThatAreRemoved(t *testing.T) {
	g := NewWithT(t)
	for _, code := range []int{http.StatusOK, http.StatusFound, http.StatusForbidden} {
		response, _, err := answer(t, Options{}, func(made *http.Response) { //nolint:bodyclose // answer closes it
			made.StatusCode = code
			made.Header.Set("Warning", `299 - "`+secretToken+`"`)
			made.Header.Set("Location", "https://elsewhere")
		})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Header).NotTo(Or(HaveKey("Warning"), HaveKey("Location")), "%d", code)
	}
}

// An answer that no API server sends ends the request, and is reported without any credential.
func TestAnswersOfNoAPIServer(t *testing.T) {
	for name, test := range map[string]struct {
		respond   func(*http.Response)
		misbehave bool
		want      string
	}{
		"JSON":                      {respond: func(*http.Response) {}},
		"nothing":                   {respond: func(r *http.Response) { r.Header.Del("Content-Type"); r.ContentLength = 0 }},
		"HTML":                      {respond: func(r *http.Response) { r.Header.Set("Content-Type", "text/html; x="+secretToken) }, misbehave: true, want: "text/html"},
		"content of no type":        {respond: func(r *http.Response) { r.Header.Del("Content-Type") }, misbehave: true, want: "of the type"},
		"a text":                    {respond: func(r *http.Response) { r.Header.Set("Content-Type", "text/plain") }, misbehave: true, want: "text/plain"},
		"a switch of the protocol":  {respond: func(r *http.Response) { r.StatusCode = http.StatusSwitchingProtocols }, want: ProtocolError},
		"protobuf, not requested":   {respond: func(r *http.Response) { r.Header.Set("Content-Type", "application/vnd.kubernetes.protobuf") }, misbehave: true, want: "protobuf"},
		"JSON of another JSON type": {respond: func(r *http.Response) { r.Header.Set("Content-Type", "application/apply-patch+json;as=Table") }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var misbehaved error
			_, _, err := answer(t, Options{OnMisbehaviour: func(err error) { misbehaved = err }}, test.respond) //nolint:bodyclose // answer closes it
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(test.want)))
				g.Expect(err.Error()).NotTo(ContainSubstring(secretToken[:10]))
			}
			g.Expect(misbehaved != nil).To(Equal(test.misbehave))
		})
	}
}

// A connection's error has a class that users can act on, and none of the text that a server may have chosen.
func TestConnectionErrorsShowTheirClassOnly(t *testing.T) {
	g := NewWithT(t)
	for class, err := range map[string]error{
		NameNotResolved:   &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host " + secretToken, Name: "a"}},
		ConnectionRefused: &net.OpError{Op: "dial", Err: fmt.Errorf("%s: %w", secretToken, syscall.ECONNREFUSED)},
		ConnectionReset:   fmt.Errorf("%s: %w", secretToken, syscall.ECONNRESET),
		Unreachable:       fmt.Errorf("%s: %w", secretToken, syscall.EHOSTUNREACH),
		DialFailed:        &net.OpError{Op: "dial", Err: errors.New(secretToken)},
		ProtocolError:     errors.New("malformed HTTP response \"" + secretToken + "\""),
		TLSFailed:         errors.New("remote error: tls: " + secretToken),
	} {
		shown := asConnectionError(err)
		g.Expect(shown).To(MatchError(ContainSubstring("(" + class + ")")))
		g.Expect(shown.Error()).NotTo(ContainSubstring(secretToken[:10]))
		g.Expect(errors.Is(shown, err)).To(BeTrue(), "%s hides its cause", class)
	}
	for reason, class := range map[x509.InvalidReason]string{x509.Expired: CertificateExpired, x509.NotAuthorizedToSign: TLSFailed} {
		g.Expect(asConnectionError(fmt.Errorf("x: %w", x509.CertificateInvalidError{Reason: reason}))).To(MatchError(ContainSubstring("(" + class + ")")))
	}
	g.Expect(asConnectionError(fmt.Errorf("%s: %w", secretToken, knownError{}))).To(Equal(knownError{}), "its text is the hub's own, and what wraps it is not")
	g.Expect(asConnectionError(fmt.Errorf("x: %w", context.Canceled))).To(MatchError(context.Canceled))
	for _, text := range []string{"net/http: server response headers exceeded 131072 bytes; aborted", "http2: response header list larger than advertised limit", "net/http: 1xx informational responses too large"} {
		var exceeded *ExceededError
		g.Expect(errors.As(asConnectionError(errors.New(text)), &exceeded)).To(BeTrue(), text)
		g.Expect(exceeded.Divisible).To(BeFalse())
	}
	http2 := asConnectionError(errors.New("http2: server sent GOAWAY, debug=\"" + secretToken + " Bearer abcdef0123456789\""))
	g.Expect(http2.Error()).To(HavePrefix("http2: "))
	g.Expect(http2.Error()).NotTo(ContainSubstring("abcdef0123456789"))
}

// knownError is an error whose text is safe to show.
type knownError struct{}

func (knownError) Error() string { return "the hub's connection was closed" }
func (knownError) Redacted()     {}

// A large body takes one of the slots for large bodies until it is closed, even if nobody reads it to its end.
func TestLargeBodiesLeaveTheirSlot(t *testing.T) {
	g := NewWithT(t)
	slots := make(Slots, 1)
	limited := LimitResponses(Options{Limits: TargetLimits(), LargeSlots: slots})(roundTripperFunc(func(request *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: request, Body: io.NopCloser(blanks{}), ContentLength: -1}, nil
	}))
	for range 2 {
		response, err := limited.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://host/api/v1/namespaces/a/pods/b", nil))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = io.CopyN(io.Discard, response.Body, 2*fastjson.LargeThreshold)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(slots).To(HaveLen(1))
		g.Expect(response.Body.Close()).To(Succeed())
		g.Expect(slots).To(BeEmpty())
	}
}

// Too many headers, reported as an error of the connection, quarantine the target as other large answers do.
func TestLargeHeadersAreMisbehaviour(t *testing.T) {
	g := NewWithT(t)
	var misbehaved error
	limited := LimitResponses(Options{Limits: TargetLimits(), OnMisbehaviour: func(err error) { misbehaved = err }})
	response, err := limited(roundTripperFunc(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("net/http: server response headers exceeded 131072 bytes; aborted")
	})).RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://host/version", nil))
	if err == nil {
		_ = response.Body.Close()
	}
	g.Expect(err).To(HaveOccurred())
	g.Expect(misbehaved).To(MatchError(ContainSubstring("bytes of headers")))
	transport := &http.Transport{}
	limited(transport)
	g.Expect(transport.MaxResponseHeaderBytes).To(Equal(TargetLimits().Headers))
}

// A body ends with an error at its limit. An object that is too large is the target's fault; a list may be read in smaller pages.
func TestBodiesAreBounded(t *testing.T) {
	limits := TargetLimits()
	for name, test := range map[string]struct {
		path      string
		limit     int64
		divisible bool
	}{
		"an object":             {"/api/v1/namespaces/a/pods/b", limits.Object, false},
		"an object and a limit": {"/api/v1/namespaces/a/pods/b?limit=500", limits.Object, false},
		"the version":           {"/version", limits.Probe, false},
		"discovery":             {"/apis/apps/v1", limits.Discovery, false},
		"a list in one":         {"/api/v1/pods", limits.List, false},
		"a page of a list":      {"/api/v1/pods?limit=500", limits.List, true},
		"a page of one object":  {"/api/v1/pods?limit=1", limits.List, false},
		"an OpenAPI document":   {"/openapi/v3/api/v1", limits.OpenAPI, false},
		"an unknown path of it": {"/anything", limits.Discovery, false},
	} {
		for _, tooMuch := range []int64{0, 1} {
			t.Run(fmt.Sprintf("%s, %d bytes too much", name, tooMuch), func(t *testing.T) {
				g := NewWithT(t)
				misbehaved := 0
				limited := LimitResponses(Options{Limits: limits, OnMisbehaviour: func(error) { misbehaved++ }})(roundTripperFunc(func(request *http.Request) (*http.Response, error) {
					// Blanks are JSON too, and no values.
					body := io.LimitReader(blanks{}, test.limit+tooMuch)
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: request, Body: io.NopCloser(body), ContentLength: -1}, nil
				}))
				response, err := limited.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://host"+test.path, nil))
				g.Expect(err).NotTo(HaveOccurred())
				read, err := io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				if tooMuch == 0 {
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(read).To(Equal(test.limit))
					g.Expect(misbehaved).To(BeZero())
					return
				}
				var exceeded *ExceededError
				g.Expect(errors.As(err, &exceeded)).To(BeTrue(), "%v", err)
				g.Expect(exceeded.Divisible).To(Equal(test.divisible))
				hasMisbehaved := misbehaved > 0
				g.Expect(hasMisbehaved).To(Equal(!test.divisible))
			})
		}
	}
}

// blanks is an endless body.
type blanks struct{}

func (blanks) Read(into []byte) (int, error) {
	return copy(into, bytes.Repeat([]byte{' '}, len(into))), nil
}
