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

package mailboxes

// counts are of objects of one mailbox. The account of the mailbox guards them.
type counts struct {
	// objects are all there are, beyond those of which only the identity is held, and byResource those of them that are beyond the
	// limits of their resource.
	objects, beyond, byResource int64
	// bytes is what all take, identityBytes what those beyond take. wholeBytes is what all would take without limits, and
	// savedBytes how much of that the limits of resources save.
	bytes, identityBytes, wholeBytes, savedBytes int64
}

// countsOf returns the counts of one item.
func countsOf(counted *item) counts {
	one := counts{objects: 1, bytes: counted.charged, wholeBytes: counted.charged}
	refused := refusalOf(counted.held.Load())
	if refused == notRefused {
		return one
	}
	one.beyond, one.identityBytes, one.wholeBytes = 1, counted.charged, counted.size.Load()
	if refused == byResource {
		one.byResource, one.savedBytes = 1, one.wholeBytes-counted.charged
	}
	return one
}

// add counts others once, or with -1 no more.
func (c *counts) add(others counts, sign int64) {
	c.objects += sign * others.objects
	c.beyond += sign * others.beyond
	c.byResource += sign * others.byResource
	c.bytes += sign * others.bytes
	c.identityBytes += sign * others.identityBytes
	c.wholeBytes += sign * others.wholeBytes
	c.savedBytes += sign * others.savedBytes
}

// held returns how many objects are held with more than their identity, and what those take. Nil stands for no objects.
func (c *counts) held() (objects, bytes int64) {
	if c == nil {
		return 0, 0
	}
	return c.objects - c.beyond, c.bytes - c.identityBytes
}

// wanted returns what all objects would take if only the limits of resources held.
func (c *counts) wanted() int64 { return c.wholeBytes - c.savedBytes }
