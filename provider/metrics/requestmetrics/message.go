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

package requestmetrics

import (
	"errors"
	"net"
	"net/url"
	"syscall"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// SafeMessage returns the text of an error without the address of the request. Network errors contain the address, which
// not every user who can read a mailbox or a PublishedResource may know.
func SafeMessage(err error) string {
	_, isRequest := errors.AsType[*url.Error](err)
	network, isNetwork := errors.AsType[net.Error](err)
	if _, isDial := errors.AsType[*net.OpError](err); !isRequest && !isDial {
		return err.Error()
	}
	var system syscall.Errno
	var lookup *net.DNSError
	cause := "the connection failed"
	switch {
	case isNetwork && network.Timeout():
		cause = "it took too long"
	case errors.As(err, &system):
		cause = system.Error()
	case errors.As(err, &lookup):
		cause = "its name cannot be resolved"
	case utilnet.IsProbableEOF(err):
		cause = "the connection was closed"
	}
	return "the request did not get through: " + cause
}
