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

// Package tracing records one trace for each pass of a sync controller that sends a request or fails. The nil [Tracer] records
// nothing, and its passes cost nothing.
//
// A pass begins its trace with its first request: before that it is not known whether the pass has anything to do. The spans
// of earlier steps get their times afterwards. Spans contain the object, the actions, and the status codes of the servers.
// They contain no content of objects, and no text from a server. The hub passes no trace on to kcp or to targets.
package tracing
