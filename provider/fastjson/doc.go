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

// Package fastjson provides dynamic clients that decode each response only once. [NewDynamicClient] is a replacement for
// client-go's constructor; the provider packages use it for mailboxes and targets.
//
// client-go's dynamic client reads all data first for the kind, then to check that it is JSON, and only then for the
// object. Decoding the response was most of the hub's cost of a write, and most of its cost of an event. client-go reads
// watch events three more times: to find the end of the event, and twice for the envelope.
//
// [NewFilteringClient] makes clients that drop objects by an annotation. They find it in the text, so that a dropped object is not
// decoded at all.
package fastjson
