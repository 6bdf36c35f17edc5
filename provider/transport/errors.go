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
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/synchub-dev/synchub/provider/redact"
)

// ExceededError is returned for a response that exceeds a limit.
type ExceededError struct {
	// Request describes the request.
	Request string
	// Limit is the maximum, in the Unit, for example "bytes".
	Limit int64
	Unit  string
	// Divisible is true if the request was for a page of a list, so that the client can request a smaller page.
	Divisible bool
}

func (e *ExceededError) Error() string {
	return fmt.Sprintf("the answer to %s has more than %d %s", redact.Text(e.Request), e.Limit, e.Unit)
}

// ContentTypeError is returned for a response with a content type that API servers do not send.
type ContentTypeError struct {
	// Request describes the request. ContentType is the header of the response.
	Request, ContentType string
}

func (e *ContentTypeError) Error() string {
	return fmt.Sprintf("the answer to %s is of the type %q, where an API server answers with JSON", redact.Text(e.Request), redact.Text(e.ContentType))
}

// Classes of a [ConnectionError].
const (
	NameNotResolved    = "NameNotResolved"
	ConnectionRefused  = "ConnectionRefused"
	ConnectionReset    = "ConnectionReset"
	Unreachable        = "Unreachable"
	TimedOut           = "Timeout"
	CertificateUnknown = "CertificateUnknown"
	CertificateExpired = "CertificateExpired"
	CertificateName    = "CertificateName"
	TLSFailed          = "TLS"
	ProtocolError      = "ProtocolError"
	DialFailed         = "DialFailed"
)

// classMessages are the error texts of the classes.
var classMessages = map[string]string{
	NameNotResolved:    "the server's name cannot be resolved",
	ConnectionRefused:  "the server's port refuses connections",
	ConnectionReset:    "the server closed the connection",
	Unreachable:        "the server's address is unreachable",
	TimedOut:           "the server did not answer in time",
	CertificateUnknown: "the server's certificate is not signed by an authority that the hub trusts",
	CertificateExpired: "the server's certificate is not valid now",
	CertificateName:    "the server's certificate is for other names",
	TLSFailed:          "the server and the hub did not agree on TLS",
	ProtocolError:      "the server violates the HTTP protocol",
	DialFailed:         "the server cannot be dialled",
}

// ConnectionError is returned for a request that failed without a response. Its text depends only on its class. The text
// of its cause must not be shown: it contains addresses of the resolver and of the hub, and quotes the server.
type ConnectionError struct {
	Class string
	cause error
}

func (e *ConnectionError) Error() string { return classMessages[e.Class] + " (" + e.Class + ")" }

// Unwrap returns the cause.
func (e *ConnectionError) Unwrap() error { return e.cause }

// Timeout implements [net.Error].
func (e *ConnectionError) Timeout() bool { return e.Class == TimedOut }

// Temporary implements [net.Error].
func (e *ConnectionError) Temporary() bool { return e.Class == TimedOut }

// Redacted is implemented by errors whose texts contain no secrets.
type Redacted interface {
	error
	Redacted()
}

// asConnectionError returns the error that callers get for an error of the network. Errors that client-go handles by
// themselves stay unchanged.
func asConnectionError(err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), err == io.EOF, err == io.ErrUnexpectedEOF: //nolint:errorlint // client-go compares them so, too
		return err
	}
	if redacted, ok := errors.AsType[Redacted](err); ok {
		return redacted
	}
	text := err.Error()
	if strings.Contains(text, "server response headers exceeded") || strings.Contains(text, "response header list larger") || strings.Contains(text, "1xx informational responses too large") {
		return &ExceededError{Request: "a request", Limit: targetLimits.Headers, Unit: "bytes of headers"}
	}
	if class := connectionErrorClass(err); class != "" {
		return &ConnectionError{Class: class, cause: err}
	}
	if strings.HasPrefix(text, "http2: ") {
		// client-go recognizes some of these by their constant texts.
		return redact.Error(err)
	}
	return &ConnectionError{Class: ProtocolError, cause: err}
}

// connectionErrorClass returns the class of an error, or "" if it is no error of the network or of TLS.
func connectionErrorClass(err error) string {
	var (
		name        *net.DNSError
		operation   *net.OpError
		authority   x509.UnknownAuthorityError
		hostname    x509.HostnameError
		certificate x509.CertificateInvalidError
		verified    *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		network     net.Error
	)
	switch {
	case errors.As(err, &name):
		return NameNotResolved
	case errors.Is(err, syscall.ECONNREFUSED):
		return ConnectionRefused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return ConnectionReset
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EADDRNOTAVAIL):
		return Unreachable
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return TimedOut
	case errors.As(err, &authority):
		return CertificateUnknown
	case errors.As(err, &hostname):
		return CertificateName
	case errors.As(err, &certificate) && certificate.Reason == x509.Expired:
		return CertificateExpired
	case errors.As(err, &certificate), errors.As(err, &verified), errors.As(err, &record), errors.As(err, &alert), strings.Contains(err.Error(), "tls: "):
		return TLSFailed
	case errors.As(err, &operation):
		return DialFailed
	default:
		return ""
	}
}
