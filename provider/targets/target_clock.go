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

package targets

import (
	"net/http"
	"strings"
	"time"
)

// maxClockSkew is the largest difference that [Connection.ClockSkew] ignores.
const maxClockSkew = time.Minute

// ClockSkew returns the lead of the target's clock over the hub's clock at the last probe, negative if the target's clock was
// behind. Add it to the hub's time before you compare that time with one that the target has set, such as the expiry of a token.
func (c *Connection) ClockSkew() time.Duration { return time.Duration(c.clockSkew.Load()) }

// measureClockSkew wraps a transport, and reads the target's clock from the answers to probes.
func (c *Connection) measureClockSkew(next http.RoundTripper) http.RoundTripper {
	return roundTripperFunc(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil || !strings.HasSuffix(request.URL.Path, "/version") {
			return response, err
		}
		if date, unreadable := http.ParseTime(response.Header.Get("Date")); unreadable == nil {
			ahead := date.Sub(c.clock.Now())
			if ahead.Abs() < maxClockSkew {
				ahead = 0
			}
			c.clockSkew.Store(int64(ahead))
		}
		return response, err
	})
}
