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
	"errors"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// interruptible makes the reflectors of client-go end with their contexts while kcp refuses connections. After a refusal of a watch with initial
// events they wait up to a minute without looking at their contexts (watchList in k8s.io/client-go v0.36.0, and in kcp's copy), so that a replica
// could not end in time. After any other error they list, which is refused too, and then wait with their contexts. Clients of targets do not need
// this: they repeat refused requests themselves.
type interruptible struct{ next http.RoundTripper }

// WrappedRoundTripper returns the wrapped transport. client-go closes its idle connections.
func (i interruptible) WrappedRoundTripper() http.RoundTripper { return i.next }

// RoundTrip hides the cause of a refusal.
func (i interruptible) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := i.next.RoundTrip(request)
	if err != nil && utilnet.IsConnectionRefused(err) && request.URL.Query().Get("sendInitialEvents") == "true" {
		return nil, errors.New(err.Error())
	}
	return response, err
}
