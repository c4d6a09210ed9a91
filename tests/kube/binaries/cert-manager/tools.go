//go:build tools

package tools

import _ "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
