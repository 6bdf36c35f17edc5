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

// Limits bound the answers of one server. Bytes are counted after decompression. What is decoded takes several times as much:
// "{}," is an object of about 350 bytes.
type Limits struct {
	// Probe is for versions and health, Discovery for lists of groups, versions and resources, OpenAPI for its documents,
	// Review for what the server says of rights and tokens.
	Probe, Discovery, OpenAPI, Review int64
	// Object is for one object, Event for one event of a watch, which has no limit as a whole.
	Object, Event int64
	// List is for a page of a list, Metadata for one that holds metadata only. Who asks for pages asks for a smaller one
	// then.
	List, Metadata int64
	// Page and PageValues are what takes the place of List and Values where a smaller page can be asked for; zero changes nothing.
	Page, PageValues int64
	// Values is how many fields and items an answer may have, and EventValues how many an event of a watch: they bound the memory
	// that decoding takes, as bytes do not.
	Values, EventValues int64
	// JSON is true if nothing else is asked for or taken. Nobody counts the values of protobuf, of which two bytes can be an item
	// of 300.
	JSON bool
	// Headers is for the headers of an answer, those of all informational answers before it included.
	Headers int64
	// Text is for the text of a refusal.
	Text int
	// HeaderTime is how long headers may take, Time how long a whole answer may if the request has no deadline of its own.
	// A watch may take as long as it was asked to, and Time.
	HeaderTime, Time time.Duration
}

// targetLimits are the limits of targets, which nobody vouches for.
var targetLimits = Limits{
	Probe:     64 * kib, // a version has 400 bytes
	Discovery: 2 * mib,  // a version with a thousand kinds has 300 KiB
	OpenAPI:   16 * mib, // the largest document of Kubernetes has 1.5 MB
	Review:    1 * mib,  // a rule of a review has about 100 bytes
	Object:    4 * mib,  // etcd takes 1.5 MB as protobuf, and API servers requests of 3 MiB
	Event:     4*mib + 64*kib,
	List:      16 * mib,
	Metadata:  2 * mib, // typed items take 300 bytes each, however short they are written
	Values:    1 << 19,
	// Pages of several resources are read at once, and events of all that are watched.
	PageValues: 1 << 18, EventValues: 1 << 19,
	JSON:    true,
	Headers: 128 * kib,
	Text:    256,
	// API servers end requests after a minute themselves.
	HeaderTime: time.Minute,
	Time:       90 * time.Second,
}

// TargetLimits returns the limits for answers of targets.
func TargetLimits() Limits { return targetLimits }

// KCPLimits returns the limits for answers of kcp: an operator vouches for it, but not for what tenants keep there.
func KCPLimits() Limits {
	limits := targetLimits
	limits.OpenAPI, limits.Discovery = 32*mib, 16*mib
	// One list is of all mailboxes, and the hub cannot do without it.
	limits.List, limits.Metadata, limits.Values = 1<<30, 256*mib, 1<<27
	limits.PageValues, limits.EventValues, limits.JSON = 0, limits.Values, false
	limits.Object, limits.Event = 16*mib, 16*mib
	limits.Headers = 1 * mib
	limits.Text = 1 * kib
	return limits
}

// MailboxLimits returns the limits for answers of kcp to those who list objects of tenants with [ListPage]: several are read at once.
func MailboxLimits() Limits {
	limits := KCPLimits()
	limits.Page, limits.PageValues = 16*mib, 1<<19
	return limits
}
