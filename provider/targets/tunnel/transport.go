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

package tunnel

import (
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// reconnectWait is how long a request waits for the client to connect again. A short interruption then fails no request.
const reconnectWait = 5 * time.Second

// Transport sends requests to the cluster of one SyncTarget, through the current session.
type Transport struct {
	server     *Server
	syncTarget types.UID
}

// RoundTrip implements [http.RoundTripper]. Its error is a [*ClosedError] if no tunnel is open, or why the last one was refused.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	current, err := t.session(request)
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	return current.RoundTrip(request)
}

// session returns the current session. If it was lost, session waits for the next one.
func (t *Transport) session(request *http.Request) (*session, error) {
	var timeout <-chan time.Time
	for {
		peer := t.server.find(t.syncTarget)
		if peer == nil {
			return nil, &ClosedError{}
		}
		current, changed, err := peer.state(t.server.Clock.Now())
		if current != nil {
			return current, nil
		}
		if changed == nil {
			return nil, err
		}
		if timeout == nil {
			timeout = time.After(reconnectWait)
		}
		select {
		case <-changed:
		case <-timeout:
			return nil, err
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
	}
}
