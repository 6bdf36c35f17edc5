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

// Package program is the cluster's end of a tunnel, which the program synchub-tunnel runs.
//
// A [Client] dials the hub and keeps a session with each of its replicas. A session is a connection with HTTP/2, on which the hub
// sends requests. A reverse proxy forwards them to the API server of the cluster, with the cluster's credentials.
//
// The package imports nothing of Kubernetes except its clock, so that the program is small.
package program
