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

package transport

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/synchub-dev/synchub/provider/redact"
)

// maxRefusal is how much of a refusal is read.
const maxRefusal = 64 << 10

// tooLong takes the place of the text of a refusal that is longer. A part of it could end within a credential.
const tooLong = "the server refused the request with a text of over 64 KiB, which is not shown"

// rewriteRefusal replaces the body of an answer that is no success by what of it is fit to be shown, and closes it.
func rewriteRefusal(response *http.Response, limit int, credentials *redact.Credentials) {
	content, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal+1))
	_ = response.Body.Close()
	if err != nil && len(content) == 0 {
		// The code alone says what it is.
		content = nil
	}
	var shown []byte
	media := mediaOf(response)
	status := statusIn(content, media)
	switch {
	case len(content) > maxRefusal:
		media, shown = "text/plain", []byte(tooLong)
	case status == nil:
		media, shown = "text/plain", []byte(credentials.Cut(string(content), limit))
	default:
		credentials.Status(status, limit)
		if shown, err = json.Marshal(status); err != nil {
			media, shown = "text/plain", nil
		} else {
			media = runtime.ContentTypeJSON
		}
	}
	response.Header.Set("Content-Type", media)
	response.Header.Set("Content-Length", strconv.Itoa(len(shown)))
	response.Header.Del("Content-Encoding")
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(shown)), int64(len(shown))
	response.Status = strconv.Itoa(response.StatusCode) + " " + http.StatusText(response.StatusCode)
}

// statusIn returns the Status that a body is, or nil.
func statusIn(content []byte, media string) *metav1.Status {
	status := &metav1.Status{}
	switch {
	case len(content) > maxRefusal:
		return nil
	case strings.HasSuffix(media, "protobuf"):
		if _, _, err := protobufs.Decode(content, nil, status); err != nil {
			return nil
		}
		return status
	default:
		if json.Unmarshal(content, status) != nil || status.Kind != "Status" {
			return nil
		}
		return status
	}
}

// protobufs decodes a Status.
var protobufs = func() *protobuf.Serializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"}, &metav1.Status{})
	return protobuf.NewSerializer(scheme, scheme)
}()
