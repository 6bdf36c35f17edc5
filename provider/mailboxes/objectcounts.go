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

// objectCounts are of objects of one mailbox. The account of the mailbox guards them.
type objectCounts struct {
	// objects are all there are, beyond those of which only the identity is held, and byResource those of them that are beyond the
	// limits of their resource.
	objects, identityOnly, resourceLimited int64
	// bytes is what all take, identityBytes what those beyond take. wholeBytes is what all would take without limits, and
	// savedBytes how much of that the limits of resources save.
	bytes, identityBytes, fullBytes, savedBytes int64
}

// countsFor returns the counts of one item.
func countsFor(counted *cachedObject) objectCounts {
	one := objectCounts{objects: 1, bytes: counted.countedBytes, fullBytes: counted.countedBytes}
	exceeded := exceededLimitOf(counted.current.Load())
	if exceeded == withinLimits {
		return one
	}
	one.identityOnly, one.identityBytes, one.fullBytes = 1, counted.countedBytes, counted.fullSize.Load()
	if exceeded == resourceLimit {
		one.resourceLimited, one.savedBytes = 1, one.fullBytes-counted.countedBytes
	}
	return one
}

// add counts others once, or with -1 no more.
func (c *objectCounts) add(others objectCounts, sign int64) {
	c.objects += sign * others.objects
	c.identityOnly += sign * others.identityOnly
	c.resourceLimited += sign * others.resourceLimited
	c.bytes += sign * others.bytes
	c.identityBytes += sign * others.identityBytes
	c.fullBytes += sign * others.fullBytes
	c.savedBytes += sign * others.savedBytes
}

// cached returns how many objects are held with more than their identity, and what those take. Nil stands for no objects.
func (c *objectCounts) cached() (objects, bytes int64) {
	if c == nil {
		return 0, 0
	}
	return c.objects - c.identityOnly, c.bytes - c.identityBytes
}

// wanted returns what all objects would take if only the limits of resources held.
func (c *objectCounts) wanted() int64 { return c.fullBytes - c.savedBytes }
