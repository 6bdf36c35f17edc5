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

// ExceededError says that an answer was larger than is taken.
type ExceededError struct {
	// Request names what was asked for.
	Request string
	// Limit is how many of the Unit an answer may have.
	Limit int64
	Unit  string
	// Divisible is true if less can be asked for at once.
	Divisible bool
}

func (e *ExceededError) Error() string {
	return fmt.Sprintf("the answer to %s has more than %d %s", redact.Text(e.Request), e.Limit, e.Unit)
}

// ContentTypeError says that an answer is not of a type that API servers give.
type ContentTypeError struct {
	// Request names what was asked for, ContentType is what the server says.
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

// classMessages say what a class means.
var classMessages = map[string]string{
	NameNotResolved:    "the server's name cannot be resolved",
	ConnectionRefused:  "the server's port refuses connections",
	ConnectionReset:    "the server closed the connection",
	Unreachable:        "there is no way to the server's address",
	TimedOut:           "the server did not answer in time",
	CertificateUnknown: "the server's certificate is not signed by an authority that the hub trusts",
	CertificateExpired: "the server's certificate is not valid now",
	CertificateName:    "the server's certificate is for other names",
	TLSFailed:          "the server and the hub did not agree on TLS",
	ProtocolError:      "the server does not speak HTTP as it should",
	DialFailed:         "the server cannot be dialled",
}

// ConnectionError says by its class why a request did not get through. The errors of the network and of TLS behind it name
// addresses that nobody typed, of the resolver and of the hub itself, and quote what the server sent.
type ConnectionError struct {
	Class string
	cause error
}

func (e *ConnectionError) Error() string { return classMessages[e.Class] + " (" + e.Class + ")" }

// Unwrap returns what happened.
func (e *ConnectionError) Unwrap() error { return e.cause }

// Timeout makes it a [net.Error].
func (e *ConnectionError) Timeout() bool { return e.Class == TimedOut }

// Temporary makes it a [net.Error].
func (e *ConnectionError) Temporary() bool { return e.Class == TimedOut }

// Redacted is what an error has that says of itself nothing that must not be shown.
type Redacted interface {
	error
	Redacted()
}

// asConnectionError returns what is said of an error of the network.
func asConnectionError(err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), err == io.EOF, err == io.ErrUnexpectedEOF: //nolint:errorlint // client-go compares them so, too
		// client-go knows these by themselves.
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
		// client-go knows some of these by their texts, which are constant.
		return redact.Error(err)
	}
	return &ConnectionError{Class: ProtocolError, cause: err}
}

// connectionErrorClass returns "" for what is no error of the network or of TLS.
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
