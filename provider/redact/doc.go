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

// Package redact makes texts that come from servers fit to be shown: short, on one line, without control characters and
// without credentials. From what comes over a connection it withholds those of that connection, and from all texts those in use
// that can be nothing else: whoever registers a cluster must not be able to take words out of what others read.
package redact
