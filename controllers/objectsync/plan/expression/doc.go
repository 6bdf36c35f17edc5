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

// Package expression evaluates what users write to compute values: Go templates, which yield text, and CEL
// expressions, which yield any JSON value. Both are compiled once, say which variables they use, and are safe for
// concurrent use. The same input always gives the same result: nothing is read from the clock, the environment, the
// network or a source of randomness, and maps are gone through in the order of their keys.
//
// Neither can take the hub down, whatever is written and whatever the objects hold: there are limits to what an
// evaluation may do and yield. Memory that an evaluation shares a million times costs nothing until it is written out,
// and a function can make very much of very little; so sizes are looked at before, not after.
//
// Templates are those of text/template, without definitions of further templates, and with the functions that
// [Functions] lists: those of sprig that are safe, sha3sum TEXT (SHA3-256 in hexadecimal digits) and
// sha3short TEXT [LENGTH=20] (the first of them). A field that is missing, and printing a null, is an error. White
// space at both ends goes.
//
// CEL has the libraries of Kubernetes, and its limit for one evaluation. Lists and maps that are written out must have
// values of one type, as there; dyn makes them so. A result is made plain: whole numbers are int64, bytes are base64,
// and timestamps, durations, quantities, addresses and versions are their text. An optional is its value, or null.
//
// The text of an error can quote values of the variables.
package expression
