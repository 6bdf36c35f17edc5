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

// Package requestmetrics counts every request of the hub in the HTTP transport, by destination, class, verb, resource and
// status code. Wrap a transport with [InstrumentRoundTripper], and set the class of requests with requestclass.With.
//
// The first rule of the design is one write per change and no request at rest. Counting in the transport proves that rule,
// since no request can bypass it. [SafeMessage] also decides which text of a failed request
// users may read.
package requestmetrics
