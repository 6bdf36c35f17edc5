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

// maxErrorBody is the maximum number of bytes of an error response that the hub reads.
const maxErrorBody = 64 << 10

// errorTextTooLong replaces a longer error text. A truncated text could end within a credential, which redaction would
// miss.
const errorTextTooLong = "the server refused the request with a text of over 64 KiB, which is not shown"

// redactErrorResponse replaces the body of an error response by a redacted text or Status, and closes the original body.
func redactErrorResponse(response *http.Response, limit int, credentials *redact.Credentials) {
	content, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody+1))
	_ = response.Body.Close()
	if err != nil && len(content) == 0 {
		// The status code remains.
		content = nil
	}
	var shown []byte
	mediaType := mediaTypeOf(response)
	status := parseStatus(content, mediaType)
	switch {
	case len(content) > maxErrorBody:
		mediaType, shown = "text/plain", []byte(errorTextTooLong)
	case status == nil:
		mediaType, shown = "text/plain", []byte(credentials.Truncate(string(content), limit))
	default:
		credentials.Status(status, limit)
		if shown, err = json.Marshal(status); err != nil {
			mediaType, shown = "text/plain", nil
		} else {
			mediaType = runtime.ContentTypeJSON
		}
	}
	response.Header.Set("Content-Type", mediaType)
	response.Header.Set("Content-Length", strconv.Itoa(len(shown)))
	response.Header.Del("Content-Encoding")
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(shown)), int64(len(shown))
	response.Status = strconv.Itoa(response.StatusCode) + " " + http.StatusText(response.StatusCode)
}

// parseStatus returns the Status in a body, or nil if the body contains none.
func parseStatus(content []byte, mediaType string) *metav1.Status {
	status := &metav1.Status{}
	switch {
	case len(content) > maxErrorBody:
		return nil
	case strings.HasSuffix(mediaType, "protobuf"):
		if _, _, err := statusProtobuf.Decode(content, nil, status); err != nil {
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

// statusProtobuf decodes a Status from protobuf.
var statusProtobuf = func() *protobuf.Serializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"}, &metav1.Status{})
	return protobuf.NewSerializer(scheme, scheme)
}()
