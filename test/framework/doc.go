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

// Package framework helps tests and the demo to work with the servers that package servers starts. It creates workspaces,
// applies manifests, reads objects and metrics, and gives a test suite its servers and a directory for their logs.
//
// Its functions take a context and return errors, so that they can be called directly or polled, for example by
// Eventually(framework.Get).WithContext(ctx).WithArguments(config, resource, namespace, name).
package framework
