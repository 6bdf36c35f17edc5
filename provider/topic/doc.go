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

// Package topic carries changes from the component that owns a state to the controllers that need the changes, so that no
// component depends on its readers.
//
// controller-runtime's channel sources block the sender before a controller has started, or while it is slow,
// and they queue the same change many times. A [Topic] adds a change directly to the queue of each controller,
// which never blocks and keeps each request once.
package topic
