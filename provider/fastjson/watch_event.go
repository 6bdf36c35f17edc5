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

package fastjson

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"
)

var watchEventKind = schema.GroupVersionKind{Version: "v1", Kind: "WatchEvent"}

// watchEventSerializer decodes the envelope of watch events. It passes all other data, and data that it cannot decode, to
// the wrapped serializer. That serializer would read the object once more to look for a kind in the envelope, which no API
// server sends.
type watchEventSerializer struct{ runtime.Serializer }

// Decode decodes an event. The event's object aliases data, and the caller decodes it before it reads the next event.
func (e watchEventSerializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok || defaults != nil {
		return e.Serializer.Decode(data, defaults, into)
	}
	if kind, object, ok := cutWatchEvent(data); ok {
		*event = metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: object}}
		return event, new(watchEventKind), nil
	}
	var decoded struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.WatchEvent `json:",inline"`
	}
	err := json.UnmarshalCaseSensitivePreserveInts(data, &decoded)
	if err == nil && decoded.TypeMeta == (metav1.TypeMeta{}) {
		*event = decoded.WatchEvent
		return event, new(watchEventKind), nil
	}
	return e.Serializer.Decode(data, defaults, into)
}

// cutWatchEvent returns the type and the object of an event in the form that API servers write, without decoding the
// object.
func cutWatchEvent(data []byte) (kind string, object []byte, ok bool) {
	data, begins := bytes.CutPrefix(bytes.Trim(data, whitespace), []byte(`{"type":"`))
	data, ends := bytes.CutSuffix(data, []byte("}"))
	name, object, has := bytes.Cut(data, []byte(`","object":`))
	if !begins || !ends || !has || bytes.ContainsFunc(name, func(c rune) bool { return c < 'A' || c > 'Z' }) {
		return "", nil, false
	}
	object = bytes.Trim(object, whitespace)
	if len(object) == 0 || object[0] != '{' {
		return "", nil, false
	}
	whole, ended := new(ObjectScanner).Scan(object)
	return string(name), object, ended && whole == len(object)
}
