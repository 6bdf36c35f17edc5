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

// Package apiexport keeps the mailbox export in sync with the PublishedResources: its schemas, its claims, and through them
// mailboxes' watches and the sync manager what is published.
//
// What to do is one plan over all PublishedResources, made by the [planner], which only asks; the controller carries it
// out. A PublishedResource that cannot work stops nothing but itself: what mailboxes have of it stays, and its objects are
// left alone until it is mended.
//
// Nothing is ever taken out of the export: kcp would drop the objects of that API in every mailbox. Entries made by others
// stay.
package apiexport
