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

// Package controllers wires the hub together. [Setup] makes the clients, caches and connections of this replica (hub.go) and all
// controllers (controllers.go), and adds them to the manager of the hosting cluster.
//
// The package contains no reconcile logic: each controller is in a package of its own below this directory.
package controllers
