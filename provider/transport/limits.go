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

package transport

import "time"

const (
	kib = 1 << 10
	mib = 1 << 20
)

// Limits bound the responses of one server. They count bytes after decompression. A decoded response takes several times
// as much memory: "{}," becomes an object of about 350 bytes.
type Limits struct {
	// Probe is the maximum size in bytes of a version or health response. Discovery is the maximum for a list of groups,
	// versions or resources, OpenAPI for a document, and Review for an access review or a token.
	Probe, Discovery, OpenAPI, Review int64
	// Object is the maximum size of one object, and Event the maximum size of one event of a watch. A whole watch has no
	// limit.
	Object, Event int64
	// List is the maximum size of a list, and Metadata the maximum size of a list with only metadata.
	List, Metadata int64
	// Page and PageValues replace List, Metadata and Values if the client can request a smaller page. Zero means no other
	// limits.
	Page, PageValues int64
	// Values is the maximum number of fields and items in a response, and EventValues the maximum number in an event of a
	// watch. They bound the memory for decoding, which the size in bytes does not.
	Values, EventValues int64
	// JSON is true if the hub requests and accepts only JSON. The values in protobuf are not counted, and two bytes of it can
	// become an item of 300 bytes.
	JSON bool
	// Headers is the maximum size of the headers of a response and of all informational responses before it.
	Headers int64
	// Text is the maximum length of an error text.
	Text int
	// HeaderTime is the maximum time until the headers arrive. Time is the maximum time of a whole response, if the request
	// has no deadline. A watch may take Time longer than the timeout in its request.
	HeaderTime, Time time.Duration
}

// targetLimits are the limits for targets, whose operators the hub does not trust.
var targetLimits = Limits{
	Probe:     64 * kib, // a version has 400 bytes
	Discovery: 2 * mib,  // a version with a thousand kinds has 300 KiB
	OpenAPI:   16 * mib, // the largest document of Kubernetes has 1.5 MB
	Review:    1 * mib,  // a rule of a review has about 100 bytes
	Object:    4 * mib,  // etcd takes 1.5 MB as protobuf, and API servers requests of 3 MiB
	Event:     4*mib + 64*kib,
	List:      16 * mib,
	Metadata:  2 * mib, // a decoded item takes at least 300 bytes
	Values:    1 << 19,
	// The hub reads pages of several resources, and events of all watched resources, at the same time.
	PageValues: 1 << 18, EventValues: 1 << 19,
	JSON:    true,
	Headers: 128 * kib,
	Text:    256,
	// API servers end a request after a minute.
	HeaderTime: time.Minute,
	Time:       90 * time.Second,
}

// TargetLimits returns the limits for responses of targets.
func TargetLimits() Limits { return targetLimits }

// KCPLimits returns the limits for responses of kcp. The hub trusts kcp, but not the tenants' objects in it.
func KCPLimits() Limits {
	limits := targetLimits
	limits.OpenAPI, limits.Discovery = 32*mib, 16*mib
	// A wildcard list contains the objects of all mailboxes, and the hub needs all of it.
	limits.List, limits.Metadata, limits.Values = 1<<30, 256*mib, 1<<27
	limits.PageValues, limits.EventValues, limits.JSON = 0, limits.Values, false
	limits.Object, limits.Event = 16*mib, 16*mib
	limits.Headers = 1 * mib
	limits.Text = 1 * kib
	return limits
}

// MailboxLimits returns the limits for responses of kcp to clients that list tenants' objects with [ListPage]. Several
// such lists are read at the same time.
func MailboxLimits() Limits {
	limits := KCPLimits()
	limits.Page, limits.PageValues = 16*mib, 1<<19
	return limits
}
