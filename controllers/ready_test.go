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

package controllers

import "testing"

type readyFake bool

func (f readyFake) HasPublished() bool { return bool(f) }
func (f readyFake) HasSynced() bool    { return bool(f) }
func (f readyFake) Leads() bool        { return bool(f) }

// An upgrade ends the former replica once the next one is ready, so a replica must not be ready before it can
// lead.
func TestCachesReadyCheck(t *testing.T) {
	for name, test := range map[string]struct {
		published, synced, cold, leads, want bool
	}{
		"nothing is known": {},
		"the first caches are filled, resources are unknown": {synced: true},
		"the resources are known, caches are being filled":   {published: true},
		"all caches are filled":                              {published: true, synced: true, want: true},
		"all caches of a leader are filled":                  {published: true, synced: true, leads: true, want: true},
		"a cold standby":                                     {cold: true, want: true},
		"a cold standby that has begun to lead":              {cold: true, leads: true},
		"it has filled its caches":                           {cold: true, leads: true, published: true, synced: true, want: true},
	} {
		check := cachesReadyCheck{readyFake(test.published), readyFake(test.synced), readyFake(test.leads), test.cold}
		if err := check.check(nil); (err == nil) != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
