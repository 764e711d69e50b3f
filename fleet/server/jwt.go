package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/golang-jwt/jwt/v5"
)

// JWT verifies tokens that a vendor signs for its devices: JSON Web Tokens (RFC 7519) whose claim sub is the name of the device, and
// that expire.
type JWT struct {
	parser *jwt.Parser
	keys   jwt.VerificationKeySet
}

// minSecret is the least length of a secret in bytes.
const minSecret = 32

// ReadJWT returns a verifier with the keys of a file: public keys or certificates in PEM, for RSA, ECDSA and Ed25519, or else a secret
// for HMAC. A token is valid if one of them has signed it. The kind of the keys decides which algorithms are accepted, so a
// token cannot choose none, nor HMAC with a public key as the secret.
func ReadJWT(file []byte) (*JWT, error) {
	file = bytes.TrimSpace(file)
	v := &JWT{}
	var methods []string
	if !bytes.Contains(file, []byte("-----BEGIN ")) {
		if len(file) < minSecret {
			return nil, fmt.Errorf("a secret of %d bytes, expected %d or more", len(file), minSecret)
		}
		v.keys.Keys, methods = []jwt.VerificationKey{file}, []string{"HS256", "HS384", "HS512"}
	}
	for block, rest := pem.Decode(file); block != nil; block, rest = pem.Decode(rest) {
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if block.Type == "CERTIFICATE" {
			var c *x509.Certificate
			if c, err = x509.ParseCertificate(block.Bytes); err == nil {
				key = c.PublicKey
			}
		}
		switch key.(type) {
		case *rsa.PublicKey:
			methods = append(methods, "RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
		case *ecdsa.PublicKey:
			methods = append(methods, "ES256", "ES384", "ES512")
		case ed25519.PublicKey:
			methods = append(methods, "EdDSA")
		default:
			return nil, errors.Join(fmt.Errorf("%s: expected PUBLIC KEY or CERTIFICATE", block.Type), err)
		}
		v.keys.Keys = append(v.keys.Keys, key)
	}
	if len(v.keys.Keys) == 0 {
		return nil, errors.New("no key in PEM")
	}
	v.parser = jwt.NewParser(jwt.WithValidMethods(methods), jwt.WithExpirationRequired(), jwt.WithStrictDecoding())
	return v, nil
}

// is reports whether a token is one of a device.
func (v *JWT) is(token, device string) bool {
	if v == nil || device == "" {
		return false
	}
	var claims jwt.RegisteredClaims
	_, err := v.parser.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return v.keys, nil })
	return err == nil && claims.Subject == device
}
