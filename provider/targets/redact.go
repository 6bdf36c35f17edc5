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

package targets

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/synchub-dev/synchub/provider/transport"
)

// RedactError returns the text of an error of the target without credentials and addresses. A network error is reduced to its
// class.
func (c *Connection) RedactError(err error) string {
	if connection, ok := errors.AsType[*transport.ConnectionError](err); ok {
		return connection.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return (&transport.ConnectionError{Class: transport.TimedOut}).Error()
	}
	text := err.Error()
	if withURL, ok := errors.AsType[*url.Error](err); ok {
		// The URL has the address of the server, which is secret like the kubeconfig.
		text = strings.ReplaceAll(text, withURL.Error(), withURL.Err.Error())
	}
	return c.credentials.Text(text)
}
