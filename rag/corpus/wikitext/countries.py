"""Names of countries by the codes that flag templates take: ISO 3166, those of sports federations, and old ones."""

from collections.abc import Callable

from rag.corpus.wikitext.arguments import Arguments

# "code code: name", of codes with three letters; where bodies differ, each body's code.
_CODES = """
ABW ARU: Aruba; AFG: Afghanistan; AGO ANG: Angola; AIA: Anguilla; ALA: Åland; ALB: Albania; AND: Andorra;
ANT AHO: Netherlands Antilles; ARE UAE: United Arab Emirates; ARG: Argentina; ARM: Armenia; ASM ASA: American Samoa;
ATG: Antigua and Barbuda; AUS: Australia; AUT: Austria; AZE: Azerbaijan; BDI: Burundi; BEL: Belgium; BEN: Benin;
BES: Bonaire; BFA BUR: Burkina Faso; BGD BAN: Bangladesh; BGR BUL: Bulgaria; BHR BRN: Bahrain; BHS BAH: Bahamas;
BIH: Bosnia and Herzegovina; BLM: Saint Barthélemy; BLR: Belarus; BLZ BIZ: Belize; BMU BER: Bermuda; BOL: Bolivia;
BRA: Brazil; BRB BAR: Barbados; BRU: Brunei; BTN BHU: Bhutan; BVT: Bouvet Island; BWA BOT: Botswana;
CAF CTA: Central African Republic; CAN: Canada; CCK: Cocos (Keeling) Islands; CHE SUI: Switzerland; CHL CHI: Chile;
CHN PRC: China; CIV: Ivory Coast; CMR: Cameroon; COD: Democratic Republic of the Congo;
COG CGO: Republic of the Congo; COK: Cook Islands; COL: Colombia; COM: Comoros; CPV: Cape Verde; CRI CRC: Costa Rica;
CUB: Cuba; CUW CUR: Curaçao; CXR: Christmas Island; CYM CAY: Cayman Islands; CYP: Cyprus; CZE: Czech Republic;
DEU GER: Germany; DJI: Djibouti; DMA: Dominica; DNK DEN: Denmark; DOM: Dominican Republic; DZA ALG: Algeria;
ECU: Ecuador; EGY: Egypt; ENG: England; ERI: Eritrea; ESH: Western Sahara; ESP: Spain; EST: Estonia; ETH: Ethiopia;
FIN: Finland; FJI FIJ: Fiji; FLK: Falkland Islands; FRA: France; FRO FAR: Faroe Islands;
FSM: Federated States of Micronesia; GAB: Gabon; GBR UKGBI: United Kingdom; GEO: Georgia; GGY: Guernsey; GHA: Ghana;
GIB: Gibraltar; GIN GUI: Guinea; GLP: Guadeloupe; GMB GAM: Gambia; GNB GBS: Guinea-Bissau; GNQ GEQ: Equatorial Guinea;
GRC GRE: Greece; GRD GRN: Grenada; GRL: Greenland; GTM GUA: Guatemala; GUF: French Guiana; GUM: Guam; GUY: Guyana;
HKG: Hong Kong; HND HON: Honduras; HRV CRO: Croatia; HTI HAI: Haiti; HUN: Hungary; IDN INA: Indonesia;
IMN IOM: Isle of Man; IND: India; IRL: Ireland; IRN IRI: Iran; IRQ: Iraq; ISL: Iceland; ISR: Israel; ITA: Italy;
JAM: Jamaica; JEY JER: Jersey; JOR: Jordan; JPN: Japan; KAZ: Kazakhstan; KEN: Kenya; KGZ: Kyrgyzstan;
KHM CAM: Cambodia; KIR: Kiribati; KNA SKN: Saint Kitts and Nevis; KOR: South Korea; KWT KUW: Kuwait; LAO: Laos;
LBN LIB: Lebanon; LBR: Liberia; LBY LBA: Libya; LCA: Saint Lucia; LIE: Liechtenstein; LKA SRI: Sri Lanka;
LSO LES: Lesotho; LTU: Lithuania; LUX: Luxembourg; LVA LAT: Latvia; MAC: Macau; MAF: Saint Martin; MAR: Morocco;
MCO MON: Monaco; MDA: Moldova; MDG MAD: Madagascar; MDV: Maldives; MEX: Mexico; MHL: Marshall Islands;
MKD: North Macedonia; MLI: Mali; MLT: Malta; MMR MYA: Myanmar; MNE: Montenegro; MNG MGL: Mongolia;
MNP NMA: Northern Mariana Islands; MOZ: Mozambique; MRT MTN: Mauritania; MSR: Montserrat; MTQ: Martinique;
MUS MRI: Mauritius; MWI MAW: Malawi; MYS MAS: Malaysia; MYT: Mayotte; NAM: Namibia; NCL: New Caledonia;
NER NIG: Niger; NFK: Norfolk Island; NGA NGR: Nigeria; NIC NCA: Nicaragua; NIR: Northern Ireland; NIU: Niue;
NLD NED: Netherlands; NOR: Norway; NPL NEP: Nepal; NRU: Nauru; NZL: New Zealand; OMN OMA: Oman; PAK: Pakistan;
PAN: Panama; PCN: Pitcairn Islands; PER: Peru; PHL PHI: Philippines; PLW: Palau; PNG: Papua New Guinea; POL: Poland;
PRI PUR: Puerto Rico; PRK: North Korea; PRT POR: Portugal; PRY PAR: Paraguay; PSE PLE: Palestine;
PYF: French Polynesia; QAT: Qatar; REU: Réunion; ROU ROM: Romania; RUS: Russia; RWA: Rwanda; SAU KSA: Saudi Arabia;
SCO: Scotland; SDN SUD: Sudan; SEN: Senegal; SGP SIN: Singapore; SGS: South Georgia and the South Sandwich Islands;
SHN: Saint Helena; SLB SOL: Solomon Islands; SLE: Sierra Leone; SLV ESA: El Salvador; SMR: San Marino; SOM: Somalia;
SPM: Saint Pierre and Miquelon; SRB: Serbia; SSD: South Sudan; STP: São Tomé and Príncipe; SUR: Suriname;
SVK: Slovakia; SVN SLO: Slovenia; SWE: Sweden; SWZ: Swaziland; SXM: Sint Maarten; SYC SEY: Seychelles; SYR: Syria;
TCA: Turks and Caicos Islands; TCD CHA: Chad; TGO TOG: Togo; THA: Thailand; TJK: Tajikistan; TKL: Tokelau;
TKM: Turkmenistan; TLS: East Timor; TON TGA: Tonga; TTO TRI: Trinidad and Tobago; TUN: Tunisia; TUR: Turkey;
TUV: Tuvalu; TWN ROC: Taiwan; TPE: Chinese Taipei; TZA TAN: Tanzania; UGA: Uganda; UKR: Ukraine; URY URU: Uruguay;
USA: United States; UZB: Uzbekistan; VAT: Vatican City; VCT VIN: Saint Vincent and the Grenadines; VEN: Venezuela;
VGB IVB: British Virgin Islands; VIR ISV: U.S. Virgin Islands; VNM VIE: Vietnam; VUT VAN: Vanuatu; WAL: Wales;
WLF: Wallis and Futuna; WSM SAM: Samoa; YEM: Yemen; ZAF RSA: South Africa; ZMB ZAM: Zambia; ZWE ZIM: Zimbabwe;
XKX KOS KVX: Kosovo; BOH: Bohemia; CIS: Commonwealth of Independent States; CSK TCH: Czechoslovakia;
EUN: Unified Team; EUR: Europe; FRG: West Germany; GDR DDR: East Germany; RHO: Rhodesia; SAA: Saar;
SCG: Serbia and Montenegro; SUN URS: Soviet Union; WIN: West Indies; YUG: Yugoslavia; ZAI ZAR: Zaire;
ROC: Republic of China
"""
_SHORT = {
    "uk": "United Kingdom", "gb": "United Kingdom", "us": "United States", "u.s.": "United States",
    "united states of america": "United States", "eu": "European Union", "ussr": "Soviet Union", "prc": "China",
    "people's republic of china": "China", "republic of ireland": "Ireland", "roc": "Taiwan",
    "uae": "United Arab Emirates", "un": "United Nations", "drc": "Democratic Republic of the Congo",
}  # fmt: skip


def _codes() -> dict[str, str]:
    table = {}
    for entry in " ".join(_CODES.split()).split("; "):
        codes, _, name = entry.partition(": ")
        table.update(dict.fromkeys(codes.lower().split(), name))
    return table


COUNTRIES = {**_codes(), "ant": "Antigua and Barbuda", **_SHORT}
# Codes that are templates for a country by themselves, as {{FRA}}; "rm" or "rs" would be money.
# In upper case, as pages write them: {{aut}}, {{per}} and {{win}} are other templates.
COUNTRY_TEMPLATES = frozenset(code.upper() for code in COUNTRIES if len(code) == 3) | {"UK", "USSR", "US"}


def country(arguments: Arguments) -> str:
    """{{flag|FRA}}, {{flag|France}}, {{flag|France|name=the French}}: the country's name.

    >>> country(Arguments(["FRA"])), country(Arguments(["Bhutan"])), country(Arguments(["GER", "1936"]))
    ('France', 'Bhutan', 'Germany')
    """
    return arguments.get("name") or country_name(arguments[0])


def country_name(code: str) -> str:
    return COUNTRIES.get(code.strip().lower(), code)


def country_by_template(code: str, other: Callable[[Arguments], str] | None) -> Callable[[Arguments], str]:
    """{{EUR}} is the country or whatever the code stands for; {{EUR|5}} is ``other``, a template of the same name."""
    name = country_name(code)
    return lambda arguments: other(arguments) if other and arguments.positional else arguments.get("name") or name


def athlete(arguments: Arguments) -> str:
    """{{flagIOCathlete|Name|FRA}}, {{flagathlete|Name|France}}: the name, and the country as a reader sees its code."""
    name, code = arguments[0], arguments[1]
    return f"{name} ({code})" if name and code else name
