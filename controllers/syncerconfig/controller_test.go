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

package syncerconfig

import (
	"testing"
	"time"
)

// While much is going on configs are looked at less often, but soon after it is over.
func TestPutOff(t *testing.T) {
	for name, test := range map[string]struct {
		last    time.Duration
		waiting int
		unknown bool
		want    time.Duration
	}{
		"nothing waits":                                    {last: interval},
		"few wait":                                         {last: interval, waiting: many - 1},
		"many wait, looked at a moment ago":                {last: soon, waiting: many, want: interval},
		"many wait, looked at a while ago":                 {last: interval, waiting: many, want: interval},
		"many wait, nearly long enough":                    {last: busyInterval - time.Second, waiting: many, want: time.Second},
		"many wait, long enough":                           {last: busyInterval, waiting: many},
		"many wait, and they were never looked at":         {last: 24 * time.Hour, waiting: 100 * many},
		"not all has been looked at":                       {unknown: true, want: soon},
		"not all has been looked at, and many wait":        {last: interval, waiting: many, unknown: true, want: soon},
		"not all has been looked at, nearly long enough":   {last: busyInterval - 1, unknown: true, want: 1},
		"not all can be looked at, the target may be away": {last: busyInterval, unknown: true},
	} {
		if got := putOff(test.last, test.waiting, !test.unknown); got != test.want {
			t.Errorf("%s: put off for %v, want %v", name, got, test.want)
		}
	}
}
