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

package requestmetrics_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// Users who can read a mailbox do not learn the address of the target.
func TestMessage(t *testing.T) {
	request := func(err error) error {
		return &url.Error{Op: "Patch", URL: "https://target.internal:6443/api", Err: err}
	}
	dial := func(err error) error {
		return request(&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 6443}, Err: err})
	}
	for message, errs := range map[string][]error{
		"an answer": {errors.New("an answer")},
		"the request did not get through: connection refused":          {dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), fmt.Errorf("%w; and %w", errors.New("oops"), dial(syscall.ECONNREFUSED))},
		"the request did not get through: connection reset by peer":    {dial(os.NewSyscallError("read", syscall.ECONNRESET))},
		"the request did not get through: its name cannot be resolved": {dial(&net.DNSError{Err: "no such host", Name: "target.internal", Server: "192.0.2.1:53", IsNotFound: true})},
		"the request did not get through: it took too long":            {request(context.DeadlineExceeded), dial(os.ErrDeadlineExceeded)},
		"the request did not get through: the connection was closed":   {request(io.EOF), request(io.ErrUnexpectedEOF)},
		"the request did not get through: the connection failed":       {request(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "192.0.2.1"})},
	} {
		for _, err := range errs {
			if got := requestmetrics.SafeMessage(fmt.Errorf("configmaps a/x: %w", err)); got != message && got != "configmaps a/x: "+message {
				t.Errorf("%v: want %q, got %q", err, message, got)
			}
		}
	}
}
