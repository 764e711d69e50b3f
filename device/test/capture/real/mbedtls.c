/* mbedtls.c: runs the library's own checks of its algorithms, but for two that take long, and
 * reads certificates and keys. */
#include "mbedtls/base64.h"
#include "mbedtls/bignum.h"
#include "mbedtls/camellia.h"
#include "mbedtls/ccm.h"
#include "mbedtls/certs.h"
#include "mbedtls/chachapoly.h"
#include "mbedtls/ctr_drbg.h"
#include "mbedtls/des.h"
#include "mbedtls/dhm.h"
#include "mbedtls/gcm.h"
#include "mbedtls/hmac_drbg.h"
#include "mbedtls/pk.h"
#include "mbedtls/ripemd160.h"
#include "mbedtls/rsa.h"
#include "mbedtls/sha512.h"
#include "mbedtls/x509.h"
#include "mbedtls/x509_crt.h"
#include "real.h"

void drive(void)
{
	static int (*const checks[])(int) = {
		mbedtls_base64_self_test, mbedtls_mpi_self_test, mbedtls_sha512_self_test, mbedtls_des_self_test,
		mbedtls_camellia_self_test, mbedtls_ripemd160_self_test,
		mbedtls_chachapoly_self_test, mbedtls_ccm_self_test, mbedtls_gcm_self_test,
		mbedtls_hmac_drbg_self_test, mbedtls_ctr_drbg_self_test,
		mbedtls_x509_self_test, mbedtls_dhm_self_test, mbedtls_rsa_self_test,
	};
	mbedtls_x509_crt chain;
	mbedtls_pk_context key;
	char text[3000];
	unsigned i, flags;

	for (i = 0; i < sizeof checks / sizeof *checks; i++)
		checks[i](0);
	mbedtls_x509_crt_init(&chain);
	mbedtls_pk_init(&key);
	for (i = 0; mbedtls_test_cas[i]; i++)
		mbedtls_x509_crt_parse(&chain, (const unsigned char *)mbedtls_test_cas[i], mbedtls_test_cas_len[i]);
	mbedtls_x509_crt_info(text, sizeof text, "", &chain);
	mbedtls_x509_crt_verify(&chain, &chain, NULL, "localhost", &flags, NULL, NULL);
	mbedtls_pk_parse_key(&key, (const unsigned char *)mbedtls_test_srv_key, mbedtls_test_srv_key_len, NULL, 0);
	mbedtls_pk_parse_key(&key, (const unsigned char *)mbedtls_test_ca_key, mbedtls_test_ca_key_len,
		(const unsigned char *)mbedtls_test_ca_pwd, mbedtls_test_ca_pwd_len);
	mbedtls_pk_free(&key);
	mbedtls_x509_crt_free(&chain);
}
