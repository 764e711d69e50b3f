/* expat.c: parses documents with entities, namespaces and a DTD, whole and in pieces. */
#include <stdlib.h>
#include <string.h>

#include "expat.h"
#include "real.h"

static const char *const documents[] = {
	"<?xml version='1.0' encoding='utf-8'?>\n<!DOCTYPE a [<!ENTITY e 'value &#65; &amp; more'><!ENTITY f '<b x=\"1\">&e;</b>'>"
	"<!ELEMENT a (b|c)*><!ELEMENT b (#PCDATA)><!ELEMENT c EMPTY><!ATTLIST b x CDATA '7' y (p|q) 'p'><!NOTATION n SYSTEM 'n'>"
	"<!ENTITY % pe '<!ENTITY g \"in\">'>%pe;<!ENTITY pic SYSTEM 'p' NDATA n>]>\n"
	"<a><b x='2'>&e;</b>&f;<c/><!-- comment --><?pi data?><![CDATA[ <raw> ]]>&g;</a>",
	"<n:root xmlns:n='urn:one' xmlns='urn:two' n:k='v'><child at='1' bt='2' n:ct='3'>text<x/><y><z>deep</z></y></child></n:root>",
	"<?xml version='1.0' encoding='iso-8859-1'?><l>\xe4\xf6</l>", "<broken><a></broken>", "<a b='1' b='2'/>", "<a>&undefined;</a>",
};

static unsigned elements;

static void start(void *data, const XML_Char *name, const XML_Char **attributes)
{
	char *copy = malloc(strlen(name) + 1);

	(void)attributes;
	free(copy);
	elements++;
	if (elements % 3 == 0)
		XML_DefaultCurrent(data);
}

static void end(void *data, const XML_Char *name)
{
	(void)data;
	elements += (unsigned)strlen(name);
}

static void text(void *data, const XML_Char *s, int n)
{
	char part[64];

	(void)data;
	memcpy(part, s, n < 64 ? (size_t)n : 64);
	elements += (unsigned)part[0];
}

static void element(void *data, const XML_Char *name, XML_Content *model)
{
	elements += (unsigned)strlen(name);
	XML_FreeContentModel(data, model);
}

static void any(void *data, const XML_Char *s, int n)
{
	text(data, s, n);
}

void drive(void)
{
	unsigned i, piece, names;

	for (i = 0; i < sizeof documents / sizeof *documents; i++) {
		for (piece = 1; piece < 1000; piece = piece * 3 + 2) {
			for (names = 0; names < 2; names++) {
				XML_Parser p = names ? XML_ParserCreateNS(NULL, '|') : XML_ParserCreate(NULL);
				size_t at = 0, n = strlen(documents[i]);

				XML_SetUserData(p, p);
				XML_UseParserAsHandlerArg(p);
				XML_SetElementHandler(p, start, end);
				XML_SetCharacterDataHandler(p, text);
				XML_SetElementDeclHandler(p, element);
				XML_SetParamEntityParsing(p, XML_PARAM_ENTITY_PARSING_ALWAYS);
				if (piece % 2)
					XML_SetDefaultHandler(p, any);
				for (; at < n; at += piece) {
					size_t k = n - at < piece ? n - at : piece;

					if (XML_Parse(p, documents[i] + at, (int)k, at + k == n) != XML_STATUS_OK)
						break;
				}
				XML_ParserReset(p, NULL);
				XML_ParserFree(p);
			}
		}
	}
}
