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

// Package expression evaluates Go templates, which return text, and CEL expressions, which return any JSON value. Users write
// both in PublishedResources. The package compiles each once, and reports which variables it uses. Compiled templates and
// expressions are safe for concurrent use. Equal input gives an equal result: no function reads the clock, the environment, the
// network or a source of randomness, and loops over maps follow the order of the keys.
//
// No template, expression or object can exhaust the hub's memory or CPU: limits apply to the work and the result of each
// evaluation. Values that share memory cost nothing until they are written out, and a short call can have a very large result.
// The limits therefore apply before a call, not after it.
//
// Templates have the language of text/template, without template definitions. Their functions are listed by [Functions]: the safe
// functions of sprig, sha3sum TEXT (SHA3-256 in hexadecimal digits) and sha3short TEXT [LENGTH=20] (its first digits). A missing
// field is an error, and so is printing a null. Render trims white space at both ends.
//
// CEL has the libraries of Kubernetes, and its limit for one evaluation. As in Kubernetes, the values of a list or map literal
// must have one type, which may be dyn. In a result, whole numbers are int64 and bytes are base64. Timestamps, durations,
// quantities, addresses and versions become text. An optional becomes its value, or null.
//
// Errors can quote values of the variables.
package expression
