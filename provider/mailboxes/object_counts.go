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

// objectCounts count cached objects of one mailbox. The lock of the mailbox's usage guards them.
type objectCounts struct {
	// objects counts all objects. identityOnly counts the objects that are cached as identity only, and resourceLimited the
	// ones among them that exceed the limits of their resource.
	objects, identityOnly, resourceLimited int64
	// bytes is the size of all objects, and identityBytes the size of the identityOnly ones. fullBytes is the size without
	// limits, and savedBytes the part of it that the limits of resources save.
	bytes, identityBytes, fullBytes, savedBytes int64
}

// countsFor returns the counts of one entry.
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

// add adds other counts, or subtracts them if sign is -1.
func (c *objectCounts) add(others objectCounts, sign int64) {
	c.objects += sign * others.objects
	c.identityOnly += sign * others.identityOnly
	c.resourceLimited += sign * others.resourceLimited
	c.bytes += sign * others.bytes
	c.identityBytes += sign * others.identityBytes
	c.fullBytes += sign * others.fullBytes
	c.savedBytes += sign * others.savedBytes
}

// admitted returns the number and size of the objects that are cached with more than their identity. Nil counts nothing.
func (c *objectCounts) admitted() (objects, bytes int64) {
	if c == nil {
		return 0, 0
	}
	return c.objects - c.identityOnly, c.bytes - c.identityBytes
}

// wanted returns the size that the objects would have with only the limits of resources.
func (c *objectCounts) wanted() int64 { return c.fullBytes - c.savedBytes }
