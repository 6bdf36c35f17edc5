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

// maxClockSkew is how far clocks may be apart without being said to be.
const maxClockSkew = time.Minute

// ClockSkew returns how far the target's clock is ahead of the hub's, negative if it is behind, by its last answer to a probe; zero
// if they agree. Times that the target sets, such as the end of a token, are to be compared with the hub's clock and that added.
func (c *Connection) ClockSkew() time.Duration { return time.Duration(c.clockSkew.Load()) }

// measureClockSkew notes what time it is by the target's clock.
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
